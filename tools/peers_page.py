"""Puts the figures of `docs/explain/peers.md` between their markers, from results that are committed elsewhere.

python tools/peers_page.py            write them into the page
python tools/peers_page.py --check    exit 1 if the page does not show what the results say

Nothing is measured here: every figure is one of `docs/*/results.json`, `docs/paper/results` or `benchmarks/*/*.json`,
and stands beside the command that measured it.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "peers.md"
_BLOCK = re.compile(r"<!-- peers: ([\w-]+), written by tools/peers_page.py -->\n.*?<!-- end -->", re.DOTALL)
_OURS = ("fast", "high", "best")
_FIGURES = {
    "tv1": "TV1",
    "tv2": "TV2",
    "tv3": "TV3",
    "query": "queries",
    "auc_lr": "AUC, logistic regression",
    "auc_xgb": "AUC, XGBoost",
}
_HIGHER = ("auc_lr", "auc_xgb")
_ELSEWHERE = "AIM, run to completion elsewhere"

Record = Mapping[str, Any]


def read(name: str) -> Any:
    """One of the committed results."""
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; all columns but the first are set right."""
    lines = ["|" + "|".join(f" {head} " for head in heads) + "|", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join([*lines, *("|" + "|".join(f" {value} " for value in row) + "|" for row in rows)]) + "\n"


# ------------------------------------------------------------------------------------------------ MST and AIM on adult


def _adult() -> dict[tuple[str, str], Record]:
    """Figures on adult by system and epsilon, ours without a named target."""
    found: dict[tuple[str, str], Record] = {}
    for cell in sorted(read("docs/tables/results.json")["cells"], key=lambda cell: -cell["is_told_rows"]):
        if cell["table"] == "adult" and not cell["has_target"] and cell["epsilon"]:
            found[cell["system"], cell["epsilon"]] = {name: pair[0] for name, pair in cell["figures"].items()}
    for cell in read("benchmarks/tables/aim.json")["cells"]:
        found[_ELSEWHERE, cell["epsilon"]] = cell["figures"]
    return found


def adult_part() -> str:
    """Our qualities beside MST and AIM on one table, and where AIM is nearer."""
    found = _adult()
    rows = []
    for system, epsilon in sorted(found, key=lambda key: (float(key[1]), key[0] not in _OURS)):
        figures = found[system, epsilon]
        seconds = figures["fit_seconds"] + figures["draw_seconds"] if "fit_seconds" in figures else None
        shown = [f"{figures[name]:.4f}" if name in figures else "–" for name in _FIGURES]
        rows.append((system, epsilon, *shown, "–" if seconds is None else f"{seconds:.1f}"))
    return table(("system", "ε", *_FIGURES.values(), "time, s"), rows) + "\n" + _where_behind(found)


def _where_behind(found: Mapping[tuple[str, str], Record]) -> str:
    behind = []
    for rival, epsilon in found:
        if rival in _OURS:
            continue
        for name, head in _FIGURES.items():
            ours = [found[quality, epsilon][name] for quality in _OURS if name in found.get((quality, epsilon), {})]
            theirs = found[rival, epsilon].get(name)
            if theirs is None or not ours:
                continue
            best = max(ours) if name in _HIGHER else min(ours)
            if theirs > best if name in _HIGHER else theirs < best:
                behind.append(f"- ε = {epsilon}, {head}: {rival} {theirs:.4f}, ours at best {best:.4f}.")
    if not behind:
        return "On none of these figures is a rival nearer than the best of our three qualities.\n"
    return "Where a rival is nearer than all of our three qualities:\n\n" + "\n".join(behind) + "\n"


# -------------------------------------------------------------------------------------------------------- NIST's scorer


def nist_part() -> str:
    """NIST's k-marginal scores, ours and those that it publishes, best first."""
    rows = []
    for one in read("docs/nist/results.json")["settings"]:
        scores = [each["k_marginal"] for each in one["releases"]]
        broken = mean(each["inconsistent"]["all"] for each in one["releases"])
        quality = one["name"].rpartition(", ")[2]
        rows.append((f"**Spinney**, {quality}", one["columns"], one["epsilon"], mean(scores), f"{broken:,.0f}"))
    for each in read("benchmarks/nist/published.json")["reports"]:
        broken = sum(each["inconsistent"].values())
        name = f"{each['system']} ({each['library']})"
        rows.append(
            (name, each["columns"], each["epsilon"] or "no guarantee", float(each["k_marginal"]), f"{broken:,}")
        )
    rows.sort(key=lambda row: (row[1] > 10, -row[3]))
    heads = ("system", "columns", "ε", "k-marginal", "rows that break a rule")
    ahead = []
    for is_whole in (False, True):
        group = [row for row in rows if (row[1] > 10) == is_whole]
        ours = max(row[3] for row in group if "Spinney" in row[0])
        ahead += [f"{row[0]}, {row[1]} columns: {row[3]:.1f} to our {ours:.1f}" for row in group if row[3] > ours]
    shown = table(heads, [(*row[:3], f"{row[3]:.1f}", row[4]) for row in rows])
    return f"{shown}\nAhead of the best of ours: {'; '.join(ahead) or 'none of these'}.\n"


# --------------------------------------------------------------------------------------------------- the paper's rivals


def fraud_part() -> str:
    """AUC on the card-fraud table, of predicted labels: DP-MERF and our default tree."""
    names = {
        ("tab-fraud-tree", "spinney, inside"): "Spinney's default tree, ε alone",
        ("tab-fraud-dpmerf", "dp-merf, inside"): "DP-MERF, public bandwidths, (ε, 1e-5)",
        ("tab-fraud-dpmerf", "dp-merf, published noise"): "DP-MERF as published, which reads rows: not private",
    }
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for file, method in names:
        for record in read(f"docs/paper/results/{file}.json")["records"]:
            if record["method"] == method:
                found[method, record["epsilon"]].append(record["labels"])
    epsilons = ("10", "1", "0.1")
    rows = [(name, *(f"{mean(found[method, each]):.3f}" for each in epsilons)) for (_, method), name in names.items()]
    ahead = [each for each in epsilons if mean(found["dp-merf, inside", each]) > mean(found["spinney, inside", each])]
    shown = table(("AUC, mean of 12 classifiers", *(f"ε = {each}" for each in epsilons)), rows)
    return f"{shown}\nOf the two that are private, DP-MERF is ahead at ε = {', '.join(ahead) or 'none of these'}.\n"


def balog_part() -> str:
    """MMD in two and in five dimensions: Balog et al. at their best size, and our default."""
    names = {
        "balog1": "Balog et al. 1, random points",
        "balog2": "Balog et al. 2, reduced set",
        "balog1 leak": "Balog et al. 1, given some rows as public",
        "moments": "Spinney's default, ε alone",
    }
    rows: list[tuple[Any, ...]] = []
    ahead: list[str] = []
    for file, where in (("fig-grid-vs-balog", "2"), ("fig-tree-vs-balog", "5")):
        results = read(f"docs/paper/results/{file}.json")
        for method, name in names.items():
            best = [_best_size(results["records"], method, epsilon) for epsilon in results["parameters"]["epsilons"]]
            rows.append((name, where, *best))
        epsilons = results["parameters"]["epsilons"]
        *rivals, ours = rows[-len(names) :]
        for name, _, *best in rivals:
            nearer = [epsilon for epsilon, theirs, our in zip(epsilons, best, ours[2:], strict=True) if theirs < our]
            ahead += [f"{name}, {where} dimensions, at ε = {', '.join(nearer)}"] if nearer else []
    heads = ("MMD, lower is better", "dimensions", *(f"ε = {each}" for each in epsilons))
    shown = table(heads, [(*row[:2], *(f"{value:.3g}" for value in row[2:])) for row in rows])
    return f"{shown}\nNearer than our default: {'; '.join(ahead) or 'none of these'}.\n"


def _best_size(records: Iterable[Record], method: str, epsilon: str) -> float:
    sizes: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record["method"] == method and record["epsilon"] == epsilon:
            for key, value in record.items():
                if key == "mmd" or key.startswith("mmd_"):
                    sizes[key].append(value)
    return min(mean(values) for values in sizes.values())


def speed_part() -> str:
    """How long the same table takes."""
    figures = read("docs/scale/results.json")["figures"]["peers"]
    return (
        f"A million rows of five columns: MST as mbi makes it takes {figures['seconds']:.1f} s, and one of our trees "
        f"{figures['ours']:.2f} s, on the same machine; the two are not the same kind of model.\n"
    )


PARTS = {"adult": adult_part, "nist": nist_part, "fraud": fraud_part, "balog": balog_part, "speed": speed_part}


def with_parts(text: str) -> str:
    """The page with all figures in their places."""
    if sorted(_BLOCK.findall(text)) != sorted(PARTS):
        sys.exit(f"docs/explain/peers.md has lost a marker: it needs those of {', '.join(PARTS)}")
    head = "<!-- peers: {}, written by tools/peers_page.py -->\n\n"
    return _BLOCK.sub(lambda match: f"{head.format(match[1])}{PARTS[match[1]]()}\n<!-- end -->", text)


def main(arguments: list[str]) -> None:
    """Write the figures, or check them."""
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    made = with_parts(text)
    if not arguments:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        sys.exit("docs/explain/peers.md does not show what the results say; run `make page`")


if __name__ == "__main__":
    main(sys.argv[1:])
