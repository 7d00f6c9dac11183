"""Makes the table of `docs/how-to/choosing-epsilon.md`: what a forest can show of made-up rows, by rows and epsilon.

python tools/epsilon_table.py            write the table into the page
python tools/epsilon_table.py --check    exit 1 if the page shows another one

Structure and noise follow from public quantities and must agree to the digit. Distances are means over seeded releases;
another processor may round a draw differently, so they may differ by a tenth.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import spinney as sp
from spinney import metrics

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "choosing-epsilon.md"
START, END = "<!-- table: written by tools/epsilon_table.py; run `make page` -->\n", "<!-- end of table -->"
EPSILONS = ("0.01", "0.1", "1", "10")
SIZES = (1_000, 10_000, 100_000)
N_RELEASES = 3
_N_COLUMNS = 12
_DISTANCES = ("ks_distance_worst", "total_variation_1", "total_variation_2")
# A structure's short name would be taken for a method.
_IN_WORDS = {"tree": "pairs along a tree", "target": "with the target", "independent": "independent columns"}
_HEAD = """\
| rows | epsilon | structure | noise of a count, one column | together | worst KS | TV1 | TV2 |
|---:|---:|---|---:|---:|---:|---:|---:|
"""

SCHEMA = sp.Schema(
    {f"x{i}": sp.Real(-20, 20) if i % 2 else sp.Category(tuple(range(10))) for i in range(_N_COLUMNS - 1)}
    | {"y": sp.Boolean()}
)


def made_up(n_rows: int) -> np.ndarray:
    """Rows that depend on three hidden numbers: categories and reals in turn, and a target."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_rows, 3))
    leaning = hidden @ rng.normal(size=(3, _N_COLUMNS)) + rng.normal(size=(n_rows, _N_COLUMNS))
    leaning[:, ::2] = np.clip(np.floor(1.5 * leaning[:, ::2] + 5), 0, 9)
    leaning[:, -1] = leaning[:, -1] > 1
    return leaning


def line(n_rows: int, epsilon: str) -> str:
    """One line of the table."""
    real = made_up(n_rows)
    distances = []
    for seed in range(N_RELEASES):
        model = sp.ForestSynthesizer(epsilon, target="y").fit(real, SCHEMA, entropy=sp.UnsafeSeededEntropy(seed))
        rows = model.sample(n_rows, seed=seed)
        distances.append([metrics.METRICS[name](real, rows, schema=SCHEMA) for name in _DISTANCES])
    plan = model.design_.plan
    together = "cliques" if "cliques" in plan.tables else "pairs"
    noise = [f"{plan.noise_std(stage):,.0f}" if stage in plan.tables else "" for stage in ("one-way", together)]
    shown = " | ".join(f"{distance:.3f}" for distance in np.mean(distances, axis=0))
    structure = _IN_WORDS.get(model.design_.structure, model.design_.structure)
    return f"| {n_rows:,} | {epsilon} | {structure} | {noise[0]} | {noise[1]} | {shown} |\n"


def table() -> str:
    """All lines."""
    return _HEAD + "".join(line(n_rows, epsilon) for n_rows in SIZES for epsilon in EPSILONS)


def agree(shown: str, made: str) -> bool:
    """Whether two tables say the same: to the digit, but for distances, which may differ by a tenth."""
    ends = re.compile(r"\| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|$", re.MULTILINE)
    pairs = zip(ends.findall(shown), ends.findall(made), strict=False)
    are_near = all(np.allclose(np.array(a, float), np.array(b, float), rtol=0.1, atol=0.001) for a, b in pairs)
    return are_near and ends.sub("", shown) == ends.sub("", made)


def main(arguments: list[str]) -> None:
    """Write the table, or check it."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    shown, _, after = rest.partition(END)
    if not after:
        sys.exit(f"{PAGE.name} has lost its markers: {START.strip()} and {END}")
    match arguments:
        case ["--check"]:
            if not agree(shown, table()):
                sys.exit(f"docs/how-to/{PAGE.name} shows another table; run `make page`")
        case []:
            PAGE.write_text(f"{before}{START}{table()}{END}{after}", encoding="utf-8")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
