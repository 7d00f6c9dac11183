"""Which file of the repository is which page of the site, and where links lead.

Pages under `docs/` keep their place. Proofs, which stand beside the code, become `proofs/NAME.md`; the changelog and
the contributor's page get one each; a link to a folder leads to its index. Any other file that a page links to is
copied as text, so that no link of the site is dead and none leads out of it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from tools.website.code_host import outside_fences

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!\\)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?P<title>\s+\"[^\"]*\")?\)")
SINGLE_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def proofs() -> dict[str, str]:
    """The proofs by their path in the repository, with their page."""
    found = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "src").rglob("*.proof.md"))}
    pages = {origin: f"proofs/{path.name.removesuffix('.proof.md')}.md" for origin, path in found.items()}
    if len(set(pages.values())) < len(pages):
        raise ValueError("two proofs have one name; their pages would overwrite each other")
    return pages


class Places:
    """Pages of the site by the paths of the repository.

    Args:
        files: the paths of all files under `docs/`, from there.
            Those that are made for the site belong to them.
    """

    def __init__(self, files: set[str]) -> None:
        self.proofs = proofs()
        self.files = files | set(self.proofs.values()) | set(SINGLE_PAGES.values())
        self.copied: set[str] = set()

    def origin_of(self, page: str) -> str:
        """The path in the repository of what a page was made of."""
        for origin, place in (self.proofs | SINGLE_PAGES).items():
            if place == page and origin != "README.md":
                return origin
        return f"docs/{page}"

    def page_of(self, origin: str) -> str | None:
        """The page or file of the site for a path of the repository; None where there is none."""
        known = self.proofs | SINGLE_PAGES
        if origin in known:
            return known[origin]
        if origin.startswith("docs/"):
            place = origin.removeprefix("docs/")
            for one in (place.replace(".ipynb", ".md"), place, f"{place}/index.md"):
                if one in self.files:
                    return one
        if (ROOT / origin).is_file():
            self.copied.add(origin)
            return f"files/{origin}.txt"
        return None

    def relinked(self, text: str, page: str) -> str:
        """The text of a page with every link to the repository made one within the site.

        Raises:
            ValueError: a link leads nowhere.
        """
        origin = PurePosixPath(self.origin_of(page))

        def moved(match: re.Match[str]) -> str:
            target = match["target"]
            if not target or ":" in target:
                return match[0]
            wanted = self.page_of(normpath(str(origin.parent / target)))
            if wanted is None:
                raise ValueError(f"{origin} links to {target}, which is nowhere")
            if wanted == page and target.endswith(".ipynb"):
                return match[0]  # the page of a notebook offers the notebook itself
            return f"]({relpath(wanted, str(PurePosixPath(page).parent))}{match['anchor'] or ''}{match['title'] or ''})"

        return "".join(LINK.sub(moved, line) if is_prose else line for line, is_prose in outside_fences(text))
