"""The navigation: sections with pages in the order in which one reads them; pages for contributors come last, together.

What is listed here comes first, in this order, if it exists. Every other page of a folder follows under "More", so that
a page that somebody adds is never lost; `tests/docs/test_site.py` looks that each page is there once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

START = ["start/first-release", "start/real-table", "start/cheat-sheet", "explain/glossary", "changelog"]
HOW_TO = {
    "State what is public": ["schema", "rules", "codes-and-places"],
    "Plan and fit": ["choosing-epsilon", "mixed-tables", "people", "parameters"],
    "Draw, ask, show": ["sampling", "ask", "notebooks", "explain", "compare"],
    "Sign off": ["studio", "report", "ledger", "verify", "audit"],
    "Where tables are": ["files", "engines", "containers", "r"],
}
EXPLAIN = {
    "How it works": ["how-it-works", "forest", "people", "error-bars"],
    "What was measured": ["fidelity", "nist", "scale", "peers"],
    "What is guaranteed": ["evidence", "../limitations"],
}
GALLERY = ["index", "city", "loans", "census", "hundred-million", "players"]
REFERENCE = ["library", "cli", "release-file", "ledger"]
PAPER = ["paper", "errata", "explain/theory", "how-to/rivals"]
CONTRIBUTORS = ["contributing", "contribute/tests", "contribute/measuring"]
DECISIONS = [
    *("trees", "columns", "forest", "persons", "rows", "privacy", "counting", "tables", "answers", "releases"),
    *("reports", "measures", "audit", "rooms", "project"),
]

Titles = Mapping[str, str]


def navigation(pages: Iterable[str], titles: Titles, api: Iterable[str]) -> list[Any]:
    """The navigation of these pages, as MkDocs takes it.

    Args:
        pages: paths of all Markdown pages, from `docs/`.
        titles: their titles, for those that have none of their own in the navigation.
        api: pages of the API reference, in their order.
    """
    left = dict.fromkeys(sorted(pages))

    def take(names: Iterable[str], folder: str = "") -> list[Any]:
        chosen = []
        for name in names:
            page = f"{folder}/{name}.md" if folder else f"{name}.md"
            page = page.replace(f"{folder}/../", "") if folder else page
            if page in left:
                del left[page]
                chosen.append({titles[page]: page} if page in titles else page)
        return chosen

    def grouped(groups: Mapping[str, Iterable[str]], folder: str) -> list[Any]:
        found: list[Any] = take(["index"], folder)
        return found + [{name: some} for name, names in groups.items() if (some := take(names, folder))]

    def rest(folder: str) -> list[Any]:
        return take([page.removesuffix(".md") for page in list(left) if page.startswith(f"{folder}/")])

    def section(name: str, listed: list[Any], folder: str, *, more: str = "") -> list[Any]:
        others = rest(folder)
        listed += [{more: others}] if more and others else others
        return [{name: listed}] if listed else []

    home, start, paper = take(["index"]), take(START), take(PAPER)
    sections = section("How-to", grouped(HOW_TO, "how-to"), "how-to", more="More")
    sections += section("Explain", grouped(EXPLAIN, "explain"), "explain", more="More")
    sections += section("Gallery", take(GALLERY, "gallery"), "gallery")
    sections += section("Notebooks", take(["index"], "notebooks"), "notebooks")
    reference = [*take(["index"], "reference"), *take(REFERENCE, "reference")]
    reference.append({"API": take(page.removesuffix(".md") for page in api)})
    sections += section("Reference", reference, "reference")
    contributors = take(CONTRIBUTORS) + section("More", [], "contribute")
    contributors += section("Decisions", take(["index", *DECISIONS], "decisions"), "decisions")
    contributors += section("Proofs", take(["index"], "proofs"), "proofs")
    contributors += [{"The paper": paper}] if paper else []
    start += section("First steps", [], "start")
    start += take([page.removesuffix(".md") for page in list(left)])
    return [*home, {"Start": start}, *sections, {"Contributors": contributors}]
