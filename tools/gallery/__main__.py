"""Runs the stories of the gallery, or writes what they found into the pages; see the package's docstring."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import tools.gallery
from tools.gallery import census, city, hundred_million, loans, players
from tools.gallery.work import ROOT, Work

PAGES = ROOT / "docs" / "gallery"
RESULTS = PAGES / "results.json"
STORIES: dict[str, ModuleType] = {"city": city, "loans": loans, "players": players}
FROM_RESULTS: dict[str, ModuleType] = {"census": census, "hundred-million": hundred_million}
_BLOCK = re.compile(r"<!-- gallery: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def with_blocks(text: str, found: dict[str, str], page: str) -> str:
    """A page with everything in its place; a block without a place, or a place without a block, is an error."""
    wanted = _BLOCK.findall(text)
    if sorted(wanted) != sorted(found):
        sys.exit(f"docs/gallery/{page}.md has places {sorted(wanted)}, and there is {sorted(found)}")
    return _BLOCK.sub(lambda match: f"<!-- gallery: {match[1]} -->\n\n{found[match[1]]}\n<!-- end -->", text)


def pages() -> dict[Path, str]:
    """Every page of the gallery as it should read."""
    stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    made = {}
    for name, story in (STORIES | FROM_RESULTS).items():
        path = PAGES / f"{name}.md"
        found = story.blocks(stored[name]) if name in STORIES else story.blocks()
        made[path] = with_blocks(path.read_text(encoding="utf-8"), found, name)
    return made


def measure(data: Path, names: list[str]) -> None:
    """Run the stories and keep what they found; the others' results stay."""
    stored: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names:
        sys.stdout.write(f"{name} ...\n")
        with tempfile.TemporaryDirectory() as folder:
            work = Work(data, Path(folder))
            figures = STORIES[name].measure(work)
            stored[name] = {"figures": figures, "transcripts": work.transcripts, "seconds": work.seconds}
        RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, write or check."""
    parser = argparse.ArgumentParser(description=tools.gallery.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the public tables; fits them anew")
    parser.add_argument("--only", action="append", choices=[*STORIES], help="one story")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not up to date")
    given = parser.parse_args()
    if given.data is not None:
        measure(given.data, given.only or [*STORIES])
    if not given.check:
        for story in FROM_RESULTS.values():
            story.draw()
    for path, text in pages().items():
        if given.check and path.read_text(encoding="utf-8") != text:
            sys.exit(f"docs/gallery/{path.name} does not show what the results say; run `make page`")
        if not given.check:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
