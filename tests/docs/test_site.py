"""The site is complete: every page and every public name is in it, and its checks notice what they should.

The site itself is built by `make site`, which has MkDocs and our own check look at each link.
"""

from __future__ import annotations

import base64
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

import spinney as sp
import spinney.metrics
from spinney_paper import kernels

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from tools.website import api, check, code_host, examples, nav, notebooks, places  # noqa: E402
from tools.website.__main__ import prepare, prepared_pages  # noqa: E402

SETTINGS = (ROOT / "tools/website/mkdocs.yml").read_text()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    prepare(folder)
    return folder


def in_navigation(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in in_navigation(part)]


def test_every_page_is_in_the_navigation_once(prepared: Path) -> None:
    """Whoever adds a page under docs/ finds it in the site, and what the navigation names exists."""
    written = {path.relative_to(prepared / "docs").as_posix() for path in (prepared / "docs").rglob("*.md")}
    line = (prepared / "mkdocs.yml").read_text().splitlines()[-1]
    named = in_navigation(json.loads(line.removeprefix("nav: ")))
    assert sorted(named) == sorted(written)
    assert {"changelog.md", "proofs/kdtree.md", "decisions/index.md", "start/cheat-sheet.md"} <= written
    assert {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")} <= written


def test_pages_that_nobody_listed_are_not_lost() -> None:
    """A new how-to, a new folder and a page at the top get a place in the navigation."""
    pages = ["index.md", "how-to/schema.md", "how-to/new.md", "explain/x.md", "decisions/0001-a.md", "odd/page.md"]
    assert sorted(in_navigation(nav.navigation(pages, {}, []))) == sorted(pages)


def test_every_public_name_has_an_entry() -> None:
    """The API reference names all that the library, its metrics and its errors offer."""
    text = "".join(api.api_pages().values())
    named = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    wanted = {f"spinney.{name}" for name in sp.__all__ if name not in ("__version__", "SpinneyError")}
    wanted |= {api.metric_path(name) for name in spinney.metrics.__all__}
    wanted |= {f"spinney_paper.kernels.{name}" for name in kernels.__all__}
    wanted |= {f"spinney.errors.{name}" for name in api.error_names()}
    assert named == wanted
    assert "BudgetError" in api.error_names()
    assert api.metric_path("compare") == "spinney.metrics.compare.compare"
    assert api.metric_path("wasserstein") == "spinney.metrics.wasserstein"


def undocumented(door: Any) -> list[str]:
    """Arguments that a docstring does not explain."""
    text = inspect.getdoc(door) or ""
    given = [name for name in inspect.signature(door).parameters if not name.startswith("_") and name != "self"]
    return [name for name in given if not re.search(rf"^\s+\*{{0,2}}{name}(, \w+)*:", text, re.MULTILINE)]


def front_doors() -> dict[str, Any]:
    doors: dict[str, Any] = {f"metrics.{name}": getattr(spinney.metrics, name) for name in spinney.metrics.__all__}
    doors |= {f"metrics.kernels.{name}": getattr(kernels, name) for name in kernels.__all__}
    doors |= {name: getattr(sp, name) for name in sp.__all__ if name not in ("__version__", "SpinneyError")}
    for whose in [name for name, door in doors.items() if inspect.isclass(door) and not name.startswith("metrics.")]:
        own = {name: part for name, part in vars(doors[whose]).items() if inspect.isfunction(part)}
        if doors[whose].__module__.startswith(("spinney.synthesizers", "spinney.release", "spinney.schema.schema")):
            doors |= {f"{whose}.{name}": part for name, part in own.items() if not name.startswith("_")}
    return {name: door for name, door in doors.items() if callable(door)}


def test_every_argument_at_the_front_doors_is_explained() -> None:
    """Docstrings are the reference, so each argument of each public function and class stands in one."""
    doors = front_doors()
    assert len(doors) > 60
    assert not {name: missing for name, door in doors.items() if (missing := undocumented(door))}


def test_an_argument_without_a_word_is_noticed() -> None:
    def thin(table: Any, epsilon: Any) -> None:
        """Do something.

        Args:
            table: the rows.
        """

    assert undocumented(thin) == ["epsilon"]


def test_settings_load_nothing_and_pass_nothing_over() -> None:
    """What makes the site work from disk, strictly and without a network is switched on."""
    for setting in ("use_directory_urls: false", "strict: true", "  font: false", "  - offline", "anchors: warn"):
        assert f"\n{setting}" in SETTINGS or f", {setting}" in SETTINGS, setting
    assert "http" not in SETTINGS
    for name in re.findall(r"(?:theme|images)/[\w.-]+", SETTINGS):
        assert (ROOT / "docs" / name).is_file(), name


def test_links_to_the_repository_become_links_within_the_site() -> None:
    """Proofs are pages, a test is copied as text, code is left alone, and a dead link is an error."""
    known = places.Places({"how-to/ask.md", "how-to/index.md"})
    text = known.relinked(
        "[p](../../src/spinney/tree/grid.proof.md#x) [a](ask.md) [h](../how-to/) [t](../../tests/docs/test_site.py)\n"
        "```\n[p](../../src/spinney/tree/grid.proof.md)\n```\n[far](https://example.org/a)\n",
        "how-to/a.md",
    )
    assert "[p](../proofs/grid.md#x) [a](ask.md) [h](index.md)" in text
    assert "[t](../files/tests/docs/test_site.py.txt)" in text
    assert "\n[p](../../src/spinney/tree/grid.proof.md)\n" in text
    assert "[far](https://example.org/a)" in text
    assert known.copied == {"tests/docs/test_site.py"}
    books = places.Places({"notebooks/tour.ipynb", "notebooks/tour.md"})
    assert books.relinked("[t](../notebooks/tour.ipynb)", "how-to/ask.md") == "[t](../notebooks/tour.md)"
    assert books.relinked("[t](tour.ipynb)", "notebooks/tour.md") == "[t](tour.ipynb)"
    assert known.relinked("[c](docs/how-to/ask.md)", "changelog.md") == "[c](how-to/ask.md)"
    with pytest.raises(ValueError, match=r"nothing\.md, which is nowhere"):
        known.relinked("[n](nothing.md)", "how-to/ask.md")


def test_lists_are_made_for_python_markdown() -> None:
    """A list after a sentence is set apart, levels get four spaces, and code keeps its own lines."""
    text = "Words:\n- one\n  more\n  - two\n- three\n\nAfter.\n```\nx\n- y\n```\n"
    wanted = "Words:\n\n- one\n    more\n    - two\n- three\n\nAfter.\n```\nx\n- y\n```\n"
    assert code_host.for_python_markdown(text) == wanted
    assert code_host.for_python_markdown("<!-- runs: python -->\n```python\n```\n") == "```python\n```\n"


def test_a_notebook_becomes_a_page() -> None:
    """Cells, what they printed, their tables and their pictures are kept; what went to stderr is not."""
    book = nbformat.v4.new_notebook()
    pixel = base64.b64encode(b"png").decode()
    outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="hello\n"),
        nbformat.v4.new_output("stream", name="stderr", text="a bar\n"),
        nbformat.v4.new_output("display_data", data={"image/png": pixel, "text/plain": "<Figure>"}),
        nbformat.v4.new_output("display_data", data={"text/html": "<style>p{}</style><table>\n\n<td>1</table>"}),
    ]
    book.cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("print()", outputs=outputs)]
    page, pictures = notebooks.notebook_page(nbformat.writes(book), "tour")
    assert page.startswith(
        "# Title\n\n```python\nprint()\n```\n\n```text\nhello\n```\n\n![Output](tour-1.png)\n\n<table>"
    )
    assert pictures == {"tour-1.png": b"png"}
    assert "a bar" not in page
    assert "style" not in page


def test_examples_in_docstrings_become_code() -> None:
    """Lines of an example are fenced together, with what they print."""
    text = "Words.\n\n>>> 1 + 1\n2\n\nMore words.\n"
    assert examples.with_blocks(text) == "Words.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore words.\n"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="b.html">', "leads nowhere"),
        ('<a href="/a.html">', "begins at the root"),
        ('<a href="a.html#there">', "anchor that is not there"),
        ('<script src="https://far.example/x.js"></script>', "loads https://far.example/x.js"),
        ('<link rel="stylesheet" href="//far.example/x.css">', "loads //far.example/x.css"),
        ('<img src="gone.png">', "leads nowhere"),
    ],
)
def test_faults_of_a_built_site_are_noticed(tmp_path: Path, page: str, fault: str) -> None:
    (tmp_path / "a.html").write_text(page)
    (found,) = check.faults_of(tmp_path)
    assert fault in found
    (tmp_path / "a.html").write_text('<p id="here"><a href="a.html#here"><a href="https://far.example">')
    assert check.faults_of(tmp_path) == []


def test_styles_that_load_from_afar_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://far.example/font.woff) }")
    assert check.faults_of(tmp_path) == ["a.css: loads https://far.example/font.woff"]


def test_the_schema_of_the_cheat_sheet_is_one() -> None:
    """The TOML that people will copy is read as a schema."""
    text = (ROOT / "docs/start/cheat-sheet.md").read_text()
    (schema,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert list(sp.Schema.from_toml(schema))[:3] == ["age", "income", "region"]


def test_example_reports_are_reachable() -> None:
    """Each report under docs/examples is linked from a page."""
    pages = "".join(text for text in prepared_pages().values() if isinstance(text, str))
    for report in (ROOT / "docs/examples").glob("*.html"):
        assert f"examples/{report.name})" in pages
