"""Builds the documentation into a static site that works from disk and loads nothing from a network.

python -m tools.website              write site/, and check every link of it
python -m tools.website --prepare    only write the pages and the settings that MkDocs reads, into .site/
python -m tools.website --browse     open every page of site/ in Chromium: what it asks for, breaks, or is too wide

Pages are prepared as plain Markdown in a folder of their own, so that whatever builds the site needs to know nothing of
this repository: proofs and the changelog are pages, links lead to pages, notebooks are Markdown, indexes are there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.website.api import api_pages
from tools.website.browse import faults_in_browser
from tools.website.check import faults_of
from tools.website.code_host import for_python_markdown
from tools.website.indexes import indexes, title_of
from tools.website.nav import navigation
from tools.website.notebooks import notebook_page
from tools.website.places import ROOT, SINGLE_PAGES, Places

PREPARED = ROOT / ".site"
SITE = ROOT / "site"
_ELSEWHERE = re.compile(r"https://unpkg\.com/[^\"'`]*")
_SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'  # has no name for screen readers
_TITLES = {"index.md": "Home", "changelog.md": "Changelog", "explain/glossary.md": "Glossary"}
_FRONT = {"index.md": "---\nhide: [navigation, toc]\n---\n\n"}


def prepared_pages() -> dict[str, str | bytes]:
    """Every file of the site by its path: pages as they are, before links and lists are rewritten."""
    made: dict[str, str | bytes] = {}
    for path in sorted((ROOT / "docs").rglob("*")):
        place = path.relative_to(ROOT / "docs").as_posix()
        if path.is_dir() or ".ipynb_checkpoints" in place:
            continue
        made[place] = path.read_text(encoding="utf-8") if path.suffix == ".md" else path.read_bytes()
        if path.suffix == ".ipynb":
            page, pictures = notebook_page(path.read_text(encoding="utf-8"), path.stem)
            made[place.replace(".ipynb", ".md")] = page
            made |= {f"{Path(place).parent.as_posix()}/{name}": content for name, content in pictures.items()}
    made |= api_pages()
    places = Places(set(made))
    for origin, page in (places.proofs | SINGLE_PAGES).items():
        if origin != "README.md":  # its contents are the landing page and the pages that this leads to
            made[page] = (ROOT / origin).read_text(encoding="utf-8")
    made |= indexes({page: text for page, text in made.items() if isinstance(text, str)})
    return made


def prepare(folder: Path) -> None:
    """Write the pages and the settings into a folder, which is emptied first.

    Args:
        folder: gets `docs/` and `mkdocs.yml`.
    """
    made = prepared_pages()
    places = Places(set(made))
    texts = {page: text for page, text in made.items() if isinstance(text, str)}
    for page, text in texts.items():
        made[page] = _FRONT.get(page, "") + for_python_markdown(places.relinked(text, page))
    made |= {f"files/{origin}.txt": (ROOT / origin).read_bytes() for origin in sorted(places.copied)}
    shutil.rmtree(folder, ignore_errors=True)
    for page, content in made.items():
        path = folder / "docs" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    nav = navigation(texts, {page: title_of(text) for page, text in texts.items()} | _TITLES, list(api_pages()))
    settings = (Path(__file__).parent / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(f"{settings}\nnav: {json.dumps(nav)}\n", encoding="utf-8")


def build() -> None:
    """Prepare, build and check the site; every warning and every fault ends it."""
    prepare(PREPARED)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", "mkdocs.yml"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    if subprocess.run(command, cwd=PREPARED, env=environment, check=False).returncode:
        sys.exit("MkDocs complained, see above; site/ is not to be used")
    _mend_theme(SITE)
    faults = faults_of(SITE)
    if faults:
        sys.exit("\n".join([*faults, f"{len(faults)} faults in site/"]))
    pages = sum(1 for _ in SITE.rglob("*.html"))
    size = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    sys.stdout.write(f"{pages} pages, {size / 1e6:.1f} MB, every link leads somewhere: open site/index.html\n")


def _mend_theme(site: Path) -> None:
    """Take addresses out of the theme's script from which it would load what we do not use, and name its search."""
    for script in (site / "assets" / "javascripts").rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        if _ELSEWHERE.search(text):
            script.write_text(_ELSEWHERE.sub("about:blank", text), encoding="utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(_SEARCH, f'{_SEARCH} aria-label="Search"'), encoding="utf-8")
    for unread in [*site.rglob("*.map"), *site.glob("sitemap.xml*")]:
        unread.unlink()


def main(arguments: list[str]) -> None:
    """Build the site, or prepare it."""
    match arguments:
        case []:
            build()
        case ["--prepare"]:
            prepare(PREPARED)
        case ["--browse"]:
            faults = faults_in_browser(SITE)
            sys.exit("\n".join(faults) if faults else None)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
