"""What is wrong with a built site: links and anchors that lead nowhere, and anything that a page would load from afar.

A page may name an address elsewhere for the reader to follow; it may not load a script, a style, a font or a picture
from one.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
_FAR_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


class _Page(HTMLParser):
    """Ids, links and loads of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value for name, value in attrs if value}
        self.ids |= {known[name] for name in ("id", "name") if name in known}
        for name, value in known.items():
            if (tag, name) in LOADED or (tag == "link" and name == "href" and known.get("rel") != "canonical"):
                self.loads.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def faults_of(site: Path) -> list[str]:
    """One line for each fault.

    Args:
        site: the folder of the built site.
    """
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(site).as_posix()] = page
    faults = []
    for name, page in pages.items():
        if name == "404.html":
            continue  # a server shows it at any depth, so its addresses begin at the root
        for target in (*page.links, *page.loads):
            problem = _problem(site, pages, name, target)
            if problem:
                faults.append(f"{name}: {target} {problem}")
        faults += [f"{name}: loads {target}" for target in page.loads if _is_far(target)]
    for path in site.rglob("*.css"):
        faults += [f"{path.relative_to(site)}: loads {far}" for far in _FAR_STYLE.findall(path.read_text())]
    return faults


def _is_far(target: str) -> bool:
    return target.startswith("//") or urlsplit(target).scheme in ("http", "https")


def _problem(site: Path, pages: dict[str, _Page], name: str, target: str) -> str | None:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    if target.startswith("/"):
        return "begins at the root, which is not the site's when it is read from disk"
    place = normpath(str(Path(name).parent / unquote(parts.path))) if parts.path else name
    if not (site / place).is_file():
        return "leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and not anchor.startswith("__") and place in pages and anchor not in pages[place].ids:
        return "has an anchor that is not there"
    return None
