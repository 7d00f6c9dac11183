"""What the tools share that put measured results into a page: markers, `--from`, `--check`, and when it was measured.

A results file says under `measured` when its figures were made: the date of the commit that ran and its version, as
`benchmarks.harness.measured` writes them, or such a line for every part. Files of before say nothing, and so does the
page, in words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

START = "<!-- results: written by tools/{tool} from {results}; run `make page` -->\n"
END = "<!-- end of results -->"
_UNDATED = "before dates were kept"

Record = Mapping[str, Any]


def when(record: Record) -> str:
    """A sentence that says with which version and when a record's figures were measured."""
    found = record.get("measured")
    if found is None:
        versions = f" with version {', '.join(record['versions'])}," if record.get("versions") else ""
        return f"Measured{versions} {_UNDATED}.\n"
    if isinstance(found, str):
        return f"Measured {_dated(found)}.\n"
    parts: dict[str, list[str]] = {}
    for name in (name for name in record["figures"] if isinstance(record["figures"][name], Mapping)):
        parts.setdefault(_dated(found[name]) if name in found else _UNDATED, []).append(f"`{name}`")
    shown = "; ".join(f"{moment}: {', '.join(names)}" for moment, names in parts.items())
    return f"Measured {shown}.\n"


def _dated(text: str) -> str:
    day, _, version = text.partition(" ")
    return f"on {day} with version {version}"


def with_results(text: str, part: str, *, start: str, name: str) -> str:
    """A page with what was made of the results in its place."""
    before, found, rest = text.partition(start)
    _, end, after = rest.partition(END)
    if not (found and end):
        sys.exit(f"{name} has lost its markers: {start.strip()} and {END}")
    return f"{before}{start}\n{part}\n{END}{after}"


def put_results(
    arguments: list[str],
    *,
    usage: str | None,
    page: Path,
    results: Path,
    start: str,
    part: Callable[[Any], str],
    take_over: Callable[[Path], str] | None = None,
) -> bool:
    """Write the page, or check it; `--from FOLDER` first takes over what a run left there. Tells whether it wrote.

    `part` makes what the page shows of a record, or of None where no results are stored; `take_over` makes the text of
    the results from the folder of a run; `usage` is said of arguments that nobody knows.
    """
    match arguments:
        case ["--from", folder] if take_over is not None:
            results.parent.mkdir(parents=True, exist_ok=True)
            results.write_text(take_over(Path(folder)), encoding="utf-8")
        case [] | ["--check"]:
            pass
        case _:
            sys.exit(usage)
    record = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else None
    shown = part(record) if record is None else f"{when(record)}\n{part(record)}"
    name, text = f"docs/explain/{page.name}", page.read_text(encoding="utf-8")
    made = with_results(text, shown, start=start, name=name)
    if arguments == ["--check"]:
        if made != text:
            sys.exit(f"{name} does not show what the results say; run `make page`")
        return False
    page.write_text(made, encoding="utf-8")
    return True
