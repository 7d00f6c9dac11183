"""Makes `docs/paper.md` and its pictures from the committed results in `docs/paper/results/`.

python tools/paper_page.py                  write the page and the pictures
python tools/paper_page.py --from FOLDER    first copy the results of `spinney paper --out FOLDER`
python tools/paper_page.py --check          exit 1 if paper.md is not what the results say
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from spinney_paper.experiments.catalogue import IDS, experiment
from spinney_paper.experiments.framework import Experiment
from spinney_paper.experiments.results import Results

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "paper.md"
PICTURES = DOCS / "paper"
RESULTS = PICTURES / "results"

_INTRODUCTION = """\
# The paper's figures and tables, measured

<!-- Written by tools/paper_page.py from the results in docs/paper/results/. Run `make page` after changing those. -->

"Differentially Private Synthetic Data Using KD-Trees" (UAI 2023), experiment by experiment, in the paper's order.
Every picture, table and verdict below follows from a committed file of results, which holds every repetition with its
seed. The data are made up or public. Noise is seeded, so that each command gives the same numbers again; that of a
release for publication never is.

Where not stated otherwise: pure ε, unit replace-one, bounds stated beforehand instead of read off the data; rival
systems promise (ε, δ). *Paper's* means the paper's algorithm with its empty space drawn exactly ([errata](errata.md)).
*PrivTree with bins* is Spinney's tree with `moments=False`, which is what more than eight columns get by default.
*Automatic settings* are functions of public quantities; *best over settings* is the best of a stated grid, chosen by
looking at the private rows: what the algorithm could do, not what a user can have. A distance is the norm of the
difference of two kernel densities; releasing nothing at all has one too, and a release that is further away is worse
than none.

`spinney paper --list` lists the experiments, `spinney paper ID` runs one, and `--quick` makes a small one in seconds.
"""


def paper_page(results: Path = RESULTS) -> str:
    """The page as Markdown. An experiment without results says so."""
    return "\n".join([_INTRODUCTION, *(_section(experiment(one), results / f"{one}.json") for one in IDS)])


def _verdict(text: str) -> str:
    """A sentence after its heading, a list below it."""
    return f"**Verdict.**{chr(10) * 2 if text.startswith('- ') else ' '}{text}"


def _section(one: Experiment, path: Path) -> str:
    command = f"`spinney paper {one.id}{' --data FOLDER' if one.needs_fraud else ''}`"
    parts = [f"## {one.title}", f"**The paper.** {one.paper_says}"]
    if not path.exists():
        parts.append(f"**Measured.** Not yet: there is no committed result. {command} makes one.")
        return "\n\n".join(parts) + "\n"
    held = Results.read(path)
    if held.is_quick:
        parts.append("*These are results of a quick run, on smaller data.*")
    versions = ", ".join(f"{name} {version}" for name, version in held.versions.items())
    parts += [
        f"![{one.title}](paper/{one.id}.svg)",
        "**Measured.**",
        one.table(held),
        _verdict(one.verdict(held)),
        f"{command}: {len(held.records):,} records, {_duration(held.seconds)} of computing; "
        f"[results](paper/results/{one.id}.json). Made with {versions}.",
    ]
    return "\n\n".join(parts) + "\n"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} seconds"


def take_over(folder: Path) -> None:
    """Copy full results into the docs; quick ones stay where they are."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for one in IDS:
        path = folder / f"{one}.json"
        if path.exists() and not Results.read(path).is_quick:
            shutil.copyfile(path, RESULTS / path.name)


def draw_pictures() -> None:
    """One .svg for each file of results."""
    from spinney.report.pictures import save_figure

    for one in IDS:
        path = RESULTS / f"{one}.json"
        if path.exists():
            save_figure(experiment(one).draw(Results.read(path)), PICTURES / f"{one}.svg", overwrite=True)


def main(arguments: list[str]) -> None:
    """Write the page, or check it."""
    if arguments == ["--check"]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != paper_page():
            sys.exit("docs/paper.md is not what the results say; run `make page`")
        return
    match arguments:
        case ["--from", folder]:
            take_over(Path(folder))
        case []:
            pass
        case _:
            sys.exit(__doc__)
    draw_pictures()
    PAGE.write_text(paper_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
