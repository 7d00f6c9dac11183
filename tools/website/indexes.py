"""Pages that list a folder, for folders that have no index of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from posixpath import relpath

from tools.website.nav import EXPLAIN, HOW_TO, PAPER

_HEADS = {
    "how-to": "# How-to\n\nOne page for each thing that you may want to do.\n",
    "explain": "# Explain\n\nHow it works, what was measured, and what is guaranteed.\n",
    "proofs": "# Proofs\n\nEach stands beside the code that it is about, where the steps that it names are marked.\n",
    "notebooks": "# Notebooks\n\nEach can be run, and is shown with what it printed.\n",
}
_GROUPS = {"how-to": HOW_TO, "explain": EXPLAIN}


def title_of(text: str) -> str:
    """The first heading of a page."""
    first = re.search(r"^# (.+)$", text, re.MULTILINE)
    return first[1].replace("`", "").removesuffix(": proof") if first else "Untitled"


def indexes(texts: Mapping[str, str]) -> dict[str, str]:
    """Index pages by their paths.

    Args:
        texts: all pages by their paths from the site's root.
    """
    made = {}
    for folder, head in _HEADS.items():
        pages = sorted(page for page in texts if page.startswith(f"{folder}/"))
        if pages and f"{folder}/index.md" not in texts:
            made[f"{folder}/index.md"] = head + _listed_in_groups(folder, pages, texts)
    return made


def _listed_in_groups(folder: str, pages: list[str], texts: Mapping[str, str]) -> str:
    text = ""
    pages = [page for page in pages if page.removesuffix(".md") not in PAPER]
    for name, names in _GROUPS.get(folder, {}).items():
        chosen = [f"{folder}/{one}.md".replace(f"{folder}/../", "") for one in names]
        text += f"\n## {name}\n\n{_listed(chosen, folder, texts)}"
        pages = [page for page in pages if page not in chosen]
    if text and pages:
        text += "\n## More\n"
    return text + (f"\n{_listed(pages, folder, texts)}" if pages else "")


def _listed(pages: Iterable[str], folder: str, texts: Mapping[str, str]) -> str:
    known = [page for page in pages if page in texts]
    return "".join(f"- [{title_of(texts[page])}]({relpath(page, folder)})\n" for page in known)
