"""Puts the measured tables of `docs/explain/evidence.md` between their markers, from `docs/audit/results.json`.

python tools/audit_page.py                                   write the tables into the page
python tools/audit_page.py --from AUDIT.json ZOO.json        first take over what `spinney audit --json` and
                                                             `python -m benchmarks.audit_zoo --out ZOO.json` printed
python tools/audit_page.py --time                            first run the tests that the page names, and time them
python tools/audit_page.py --check                           exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import when

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "evidence.md"
RESULTS = ROOT / "docs" / "audit" / "results.json"
START = "<!-- {name}: written by tools/audit_page.py from docs/audit/results.json; run `make page` -->\n"
END = "<!-- end of {name} -->"
NO_RESULTS = "No results are stored yet; `python tools/audit_page.py --from AUDIT.json ZOO.json` puts them here.\n"
SUITES = {
    "tests/exact": "output laws written out for all neighbours of small tables, outcome by outcome",
    "tests/statistical": "draws of the real mechanisms against their laws, and against 0.7 and 1.3 times the noise",
    "tests/unit/auditing": "the audit itself: its bounds against exact laws, and a part of the zoo",
}

Record = Mapping[str, Any]


def games(record: Record) -> Iterator[str]:
    """Of every family and unit the game that comes nearest to its claim."""
    found = record["audit"]
    yield (
        f"`spinney audit` played {len(found['games'])} games in {found['seconds']:.0f} seconds on the clock and "
        f"{found['processor_seconds']:.0f} of processor time; "
        f"{'no bound exceeds its claim' if found['passed'] else 'a bound exceeds its claim'}."
    )
    yield when(record).strip()
    yield "Of each family and unit the best game is shown; all bounds hold together with a confidence of 95 %."
    says_missed = all("could_miss" in game for game in found["games"])
    if says_missed:
        n, n_open = len(found["games"]), sum(not game["tells"] for game in found["games"])
        yield (
            f"{n_open} of the {n} games could have missed a leak of four times their claim, and count as too short to "
            "tell. "
            "*Could miss* is the smallest leak that the coins of a game would have shown in 95 of 100 audits."
        )
    else:
        yield (
            "These results are older than the figures of what each game could have missed, so the table does not have "
            "them, and a game of few coins may have been too short to show a leak; run `spinney audit` to see."
        )
    yield ""
    head = ["family", "unit", "neighbours", "by", "claim", "bound", "ratio", "coins", "processor seconds"]
    head[6:6] = ["could miss"] if says_missed else []
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * 4}{'---:|' * (len(head) - 4)}"
    best: dict[tuple[str, str], Record] = {}
    for game in found["games"]:
        key = game["family"], game["unit"]
        if key not in best or game["ratio"] > best[key]["ratio"]:
            best[key] = game
    for (family, unit), game in sorted(best.items(), key=lambda item: (_place(found, item[0][0]), item[0][1])):
        missed = ""
        if says_missed:  # any leak at all is written as nothing
            missed = "| any leak " if game["could_miss"] is None else f"| {game['could_miss']:.3f} "
        yield (
            f"| {family} | {unit} | {game['title']} | {game['currency']} | {game['claim']:.3f} | {game['bound']:.3f} "
            f"{missed}| {game['ratio']:.2f} | {game['coins']:,} | {game['processor_seconds']:.1f} |"
        )


def _place(found: Record, family: str) -> int:
    return [game["family"] for game in found["games"]].index(family)


def zoo(record: Record) -> Iterator[str]:
    """Which game catches which sabotage, and which none can."""
    entries = record["zoo"]
    seen = [entry for entry in entries if entry["caught"] is not None]
    caught = [entry for entry in seen if entry["caught"]]
    yield (
        f"Of {len(entries)} sabotaged mechanisms the games catch {len(caught)} of the {len(seen)} that leak more than "
        f"is charged; {sum(entry['sound_is_flagged'] for entry in seen)} of the sound ones are flagged, played as long."
    )
    yield ""
    yield "| sabotage | caught by | bound | claim | seconds |"
    yield "|---|---|---:|---:|---:|"
    for entry in entries:
        name = f"{entry['zoo']}: {entry['sabotage']}"
        if entry["caught"] is None:
            yield f"| {name} | no game can see it: {entry['why']} | | | |"
            continue
        game = entry["game"] if entry["caught"] else f"missed by {entry['game']}"
        yield f"| {name} | {game} | {entry['bound']:.2f} | {entry['claim']:.2f} | {entry['seconds']:.1f} |"


def suites(record: Record) -> Iterator[str]:
    """The tests that enumerate and compare laws, with how long they take."""
    yield "| command | what it does | processor seconds |"
    yield "|---|---|---:|"
    for folder, what in SUITES.items():
        seconds = record["suites"].get(folder)
        yield f"| `python -m pytest {folder}` | {what} | {'' if seconds is None else f'{seconds:.0f}'} |"


SECTIONS = {"suites": suites, "games": games, "zoo": zoo}


def shown(text: str, record: Record | None) -> str:
    """The page with the tables of a record."""
    for name, section in SECTIONS.items():
        start, end = START.format(name=name), END.format(name=name)
        if start not in text or end not in text:
            sys.exit(f"{PAGE} has lost its markers of {name!r}; put {start.strip()} and {end} where the tables belong")
        before, rest = text.split(start, 1)
        body = NO_RESULTS if record is None else "\n".join(section(record)) + "\n"
        text = before + start + "\n" + body + "\n" + end + rest.split(end, 1)[1]
    return text


def timed() -> dict[str, float]:
    """How much processor time the tests take that the page names."""
    found = {}
    for folder in SUITES:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "pytest", "-q", folder], cwd=ROOT, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[folder] = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    return found


def main(arguments: Sequence[str]) -> None:
    """Write or check the page."""
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else None
    match list(arguments):
        case ["--from", audit, found]:
            before = {} if record is None else record
            sys.path.insert(0, str(ROOT))
            from benchmarks.harness import measured

            record = {
                "audit": json.loads(Path(audit).read_text(encoding="utf-8")),
                "zoo": json.loads(Path(found).read_text(encoding="utf-8")),
                "measured": measured(),
                "suites": before.get("suites", {}),
            }
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        case ["--time"] if record is not None:
            record = {**record, "suites": timed()}
            RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        case [] | ["--check"]:
            pass
        case _:
            sys.exit("say nothing, --from AUDIT.json ZOO.json, --time (with results) or --check")
    text = PAGE.read_text(encoding="utf-8")
    wanted = shown(text, record)
    if "--check" in arguments:
        if wanted != text:
            sys.exit(f"{PAGE} does not show docs/audit/results.json; run `make page`")
        return
    PAGE.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
