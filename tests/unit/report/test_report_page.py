"""The page: one file that refers to nothing, runs nothing, can be read by keyboard and screen reader, escapes all."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError, MissingExtraError, ParameterError
from spinney.metrics import beside, sense
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from spinney.release.points import Generator, GeneratorRelease
from spinney.report.draw import canvas, to_svg
from spinney.report.page import HOLDER_ONLY, report_contents, report_html, report_json
from support.reports import KINDS, Page, contents_of, golden, page_of
from support.small_forests import SCHEMA, chain, fitted
from support.small_forests import table as small_table

ROOT = Path(__file__).parents[3]
HOSTILE = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'&{{ 7 * 7 }}"


def numbers_in(data: Any) -> set[str]:
    """Every number of JSON data, as a page writes it."""
    if isinstance(data, dict):
        return {number for value in data.values() for number in numbers_in(value)}
    if isinstance(data, list):
        return {number for value in data for number in numbers_in(value)}
    return set() if data is None or isinstance(data, (str, bool)) else {str(data)}


@pytest.mark.parametrize("name", KINDS)
def test_a_page_is_sound(name: str) -> None:
    """Every element is closed, ids are unique, labels lead somewhere, headings skip no level."""
    page = Page(page_of(name))
    assert [found for found, times in page.ids.items() if times > 1] == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    for tag, attribute, value in page.attributes:
        if attribute in ("aria-labelledby", "aria-describedby"):
            assert set(value.split()) <= set(page.ids), (tag, value)
        if attribute == "href" and value.startswith("#"):
            assert value[1:] in page.ids
    for landmark in ("header", "nav", "main", "footer", "title"):
        assert page.tags[landmark] >= 1, landmark
    assert ("html", "lang", "en") in page.attributes


@pytest.mark.parametrize("name", KINDS)
def test_drawings_and_tables_are_told_to_those_who_do_not_see_them(name: str) -> None:
    page = Page(page_of(name))
    assert page.svgs
    for svg in page.svgs:
        assert svg["role"] == "img"
        assert svg["inside"]["title"] == svg["inside"]["desc"] == 1
    assert page.tables
    for table in page.tables:
        assert table["captions"] == 1
        assert set(table["heads"]) <= {"col", "row"}


@pytest.mark.parametrize("name", KINDS)
def test_a_page_refers_to_nothing_and_runs_nothing(name: str) -> None:
    text = page_of(name)
    page = Page(text)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form", "img"} & set(page.tags)
    for tag, attribute, value in page.attributes:
        assert not attribute.startswith("on"), (tag, attribute)
        assert attribute != "style", "a strict policy allows no inline styles"
        if attribute in ("href", "xlink:href", "src"):
            assert value.startswith(("#", "data:image/png;base64,")), value
    outside = re.findall(r"https?://[^\"'\s<]+", text)
    assert set(outside) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    policy = next(value for _, name, value in page.attributes if name == "content" and "default-src" in value)
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert b64encode(sha256(style.encode()).digest()).decode() in policy
    assert "@import" not in style
    assert "url(" not in style


@pytest.mark.parametrize("name", KINDS)
def test_every_figure_of_the_page_stands_in_its_json_twin(name: str) -> None:
    contents = contents_of(name)
    twin = json.loads(report_json(contents))
    known, page = numbers_in(twin), Page(page_of(name))
    assert page.data
    assert set(page.data) <= known
    said = json.dumps(twin, ensure_ascii=False)
    assert all(line["answer"] in twin_texts(twin) for line in contents.nist)
    assert contents.evidence["digest"] in said
    assert contents.evidence["digest"] in page.text
    for section in ("promise", "columns", "nist", "board", "schema", "budget"):
        assert section in twin
        assert section in page.ids


def twin_texts(data: Any) -> set[str]:
    if isinstance(data, dict):
        return {text for value in data.values() for text in twin_texts(value)}
    if isinstance(data, list):
        return {text for value in data for text in twin_texts(value)}
    return {data} if isinstance(data, str) else set()


def test_a_figure_that_the_json_lacks_would_be_noticed() -> None:
    contents = contents_of("v3-points")
    known = numbers_in(json.loads(report_json(contents)))
    tampered = Page(page_of("v3-points").replace('<data value="', '<data value="1234567', 1))
    assert not set(tampered.data) <= known


def test_a_void_guarantee_is_the_first_thing_to_be_seen() -> None:
    text = page_of("v3-grid-branded")
    page = Page(text)
    assert page.title.startswith("NOT PRIVATE")
    assert text.index("NOT PRIVATE</strong>") < text.index('id="promise"')
    assert "73.2 %" not in page.text
    assert 'name="publishable" content="false"' in text


def test_equal_releases_give_equal_pages() -> None:
    contents = report_contents(golden("v3-forest-places"), title="v3-forest-places")
    assert report_html(contents) == page_of("v3-forest-places")


# ------------------------------------------------------------------------------------------------- hostile releases


@pytest.fixture(scope="module")
def hostile() -> Any:
    """A release with markup in every text that a file may hold."""
    names = [HOSTILE, "\u202eturned\n", "👩\u200d👩\u200d👧", "$x^2$"]
    rng = np.random.default_rng(0)
    columns = {
        names[0]: sp.Category([HOSTILE, "a\nb", "\u202eb", "😀"]),
        names[1]: sp.Integer(0, 9),
        names[2]: sp.Boolean(),
        names[3]: sp.Real(0, 1),
        "key": sp.Identifier(prefix="<script>alert(3)</script>"),
    }
    n_rows = 800
    table = pa.table(
        {
            names[0]: pa.array([list(columns[names[0]].values)[i] for i in rng.integers(0, 4, n_rows)]),  # type: ignore[attr-defined]
            names[1]: rng.integers(0, 9, n_rows),
            names[2]: rng.random(n_rows) < 0.5,
            names[3]: rng.random(n_rows),
            "key": [f"k{number}" for number in range(n_rows)],
        }
    )
    schema = sp.Schema(columns, rules=[sp.Implies({names[2]: True}, {names[1]: (0, 8)})])
    release = sp.ForestSynthesizer("2").fit(table, schema, entropy=sp.UnsafeSeededEntropy(3)).release_
    note = DiscreteLaplaceCounts(Fraction(1, 8), 2, HOSTILE, column=HOSTILE)
    release._card = replace(
        release._card,
        spinney_version=HOSTILE,
        synthesizer=HOSTILE,
        parameters={HOSTILE: HOSTILE, "prior": None, "deep": {HOSTILE: [HOSTILE]}},
        design={**release._card.design, HOSTILE: HOSTILE},
        events=(*release._card.events, note),
    )
    release.__dict__.pop("card", None)
    return release


def test_nothing_in_a_release_can_inject_anything(hostile: Any) -> None:
    stated = dict.fromkeys(("title", "purpose", "contact", "licence"), HOSTILE)
    contents = report_contents(hostile, **stated)
    contents = replace(contents, remarks=[HOSTILE])
    figures = {
        "tables": [
            {
                "table": HOSTILE,
                "n_real": 1,
                "n_synthetic": 1,
                "mean_ks": 0.5,
                "worst_ks": {"column": HOSTILE, "ks": 0.5},
                "columns": [],
                "drawn": [HOSTILE, "b"],
                "pairs": [{"columns": [HOSTILE, "b"], "total_variation": 0.5}],
                "sense": hostile_rows(),
                "trained": {"target": HOSTILE, "note": HOSTILE, "synthetic": {HOSTILE: 0.5}, "real": {HOSTILE: 0.5}},
                "not_trained": None,
            }
        ],
        "bars": {},
    }
    for made in (contents, contents.with_holder(figures)):
        text = report_html(made)
        page = Page(text)
        assert "<script" not in text
        assert "<img" not in text
        assert not {"script", "img"} & set(page.tags)
        assert not [name for _, name, _ in page.attributes if name.startswith("on")]
        assert "49" not in page.title, "a template does not render what it shows"
        assert "<script>alert(1)</script>" in page.text, "it is shown as text"
        assert "\u202e" not in text, "marks of direction are shown as escapes"
        assert json.loads(report_json(made))["title"] == HOSTILE


def hostile_rows() -> dict[str, Any]:
    """Figures of single rows of tables whose columns and values are hostile."""
    rows = pd.DataFrame({HOSTILE: [HOSTILE, HOSTILE], "49": [100_000, 100_001], f"{HOSTILE}2": [100_000, 100_001]})
    number = sp.Integer(0, 10**6)
    schema = sp.Schema({HOSTILE: sp.Category([HOSTILE]), "49": number, f"{HOSTILE}2": number})
    return sense(rows, rows, schema).to_dict()


def test_fragments_escape_too(hostile: Any) -> None:
    for shown in (hostile, hostile.card, hostile.schema, hostile.explain()):
        text = shown._repr_html_()
        assert "<script" not in text
        assert "<img" not in text
        assert not {"script", "img"} & set(Page(text).tags)


# ---------------------------------------------------------------------------------------------------- the holder's


def test_a_report_beside_the_real_table_says_so_everywhere() -> None:
    figures = {"tables": [], "bars": {}}
    contents = contents_of("v3-points").with_holder(figures)
    text = report_html(contents)
    page = Page(text)
    assert page.title.startswith("FOR THE HOLDER ONLY")
    assert 'name="publishable" content="false"' in text
    assert 'name="robots" content="noindex' in text
    assert text.count("FOR THE HOLDER ONLY") >= 5, "title, description, printed pages, top and section"
    assert '<p class="running only-print"' in text
    twin = contents.to_dict()
    assert twin["publishable"] is False
    assert twin["notice"] == HOLDER_ONLY
    assert "FOR THE HOLDER ONLY" not in page_of("v3-points")


def test_single_rows_stand_in_the_holders_report_alone() -> None:
    """Every value of the real rows that are shown stands on the holder's page, below a mark of its own."""
    real, synthetic = small_table(300), small_table(300)
    contents = sp.ForestSynthesizer("2").fit(real, SCHEMA).report()
    held = beside(contents, real, synthetic, SCHEMA)
    text = held.to_html()
    page = Page(text)
    assert [found for found, times in page.ids.items() if times > 1] == []
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    twin = held.to_dict()["holder"]["tables"][0]["sense"]
    assert twin == sense(real, synthetic, SCHEMA).to_dict()
    shown = page.text[page.text.index("Single rows") :]
    for row in (*twin["rows"]["real"], *twin["rows"]["synthetic"]):
        assert all(("null" if value is None else value) in shown for value in row.values())
    for values in twin["common"].values():
        assert all(f'<data value="{one["shares"]["real"]}">' in text for one in values)
    assert shown.index("FOR THE HOLDER ONLY") < shown.index("real 1")
    assert "Single rows" not in contents.to_html()
    assert "sense" not in json.dumps(contents.to_dict())


def test_a_release_with_a_guarantee_is_publishable() -> None:
    model = sp.KDTreeSynthesizer("1").fit(
        np.random.default_rng(0).random((500, 2)), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    )
    contents = model.report()
    assert contents.publishable
    assert contents.to_dict()["publishable"] is True
    text = contents.to_html()
    assert 'name="publishable" content="true"' in text
    assert "73.2 %" in Page(text).text


# ----------------------------------------------------------------------------------------------------------- size


def test_very_many_columns_stay_small() -> None:
    """Of many columns a few dozen are drawn, and all stand in tables."""
    contents = report_contents(chain(64))
    text = report_html(contents)
    page = Page(text)
    assert len(contents.columns) == 64
    assert len(text.encode()) < 1_200_000
    assert len(page.svgs) < 60
    assert "column 063" in page.text


def test_names_of_thousands_of_characters_do_not_burst_the_page() -> None:
    contents = contents_of("v3-points")
    (first, *_) = contents.columns
    columns = [first | {"key": f"{number} " + "long " * 800} for number in range(400)]
    text = report_html(replace(contents, columns=columns))
    assert len(text.encode()) < 3_000_000
    assert Page(text).tags["article"] == 400


def test_a_long_list_is_shown_by_its_commonest_values() -> None:
    values = [f"code {number}" for number in range(5000)]
    rng = np.random.default_rng(0)
    table = pa.table({"code": [values[number] for number in rng.poisson(1, 2000)], "b": rng.random(2000) < 0.5})
    schema = sp.Schema({"code": sp.Category(values), "b": sp.Boolean()})
    contents = report_contents(sp.ForestSynthesizer("2").fit(table, schema).release_)
    column = contents.columns[0]
    assert len(column["bars"]) <= 40
    assert column["bars"][0]["label"] in ("code 0", "code 1")
    assert column["bars_left_out"] > 0
    assert len(report_html(contents).encode()) < 300_000


@pytest.mark.parametrize("path", sorted((ROOT / "docs/examples").glob("*.html")), ids=lambda path: path.name)
def test_the_examples_are_sound(path: Path) -> None:
    """What is committed as an example is a page like those of the tests, and may be published."""
    text = path.read_text()
    page = Page(text)
    assert len(text.encode()) < 1_000_000
    assert 'name="publishable" content="true"' in text
    assert [found for found, times in page.ids.items() if times > 1] == []
    assert "script" not in page.tags
    assert "certified" in page.text


# ---------------------------------------------------------------------------------------------------------- files


def test_files_appear_as_their_ending_says(tmp_path: Path) -> None:
    release = golden("v3-points")
    release.report(tmp_path / "a.html", title="v3-points")
    release.report(tmp_path / "a.json", title="v3-points")
    assert (tmp_path / "a.html").read_text() == page_of("v3-points")
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(report_json(contents_of("v3-points")))
    with pytest.raises(FileError, match="overwrite=True"):
        release.report(tmp_path / "a.html")
    with pytest.raises(ParameterError, match=r"\.html or \.json"):
        release.report(tmp_path / "a.pdf")


def test_without_the_extra_the_json_is_still_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    from spinney import documents as fragments

    monkeypatch.setitem(sys.modules, "jinja2", None)
    fragments.template_environment.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"pip install jinja2.*or write a \.json file"):
            golden("v3-points").report(tmp_path / "a.html")
        golden("v3-points").report(tmp_path / "a.json")
        assert golden("v3-points")._repr_html_() is None
    finally:
        fragments.template_environment.cache_clear()
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_templates_are_part_of_the_package() -> None:
    """What the wheel takes: all files under src/spinney; templates are among them, and nothing excludes them."""
    names = {path.name for path in (ROOT / "src/spinney/report/templates").iterdir()}
    assert {"report.html", "style.css", "fragment.html", "macros.html"} <= names
    assert (
        "exclude"
        not in (ROOT / "pyproject.toml").read_text().partition("[tool.hatch.build")[2].partition("[tool.ruff")[0]
    )


# ------------------------------------------------------------------------------------------------------- drawings


def test_drawings_follow_the_page() -> None:
    """Colours of ours become classes, styles become attributes, ids get a prefix, texts stay texts."""
    axes = canvas(100, 50, left=5, bottom=5, right=5, top=5)
    axes.plot([0, 1], [0, 1], color="#1f6f4a", marker="|")
    axes.text(0.5, 0.5, "<b> & $x$", parse_math=False)
    one, two = (to_svg(axes, name=name, title="<t>", description="d & e") for name in ("one", "two"))
    assert "s-strong" in one
    assert "style=" not in one
    assert "&lt;b&gt; &amp; $x$" in one
    assert "&lt;t&gt;" in one
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_texts_stand_out_of_every_background() -> None:
    """On light, dark and printed pages alike: 4.5 to 1, as WCAG 2 asks of texts."""
    style = (ROOT / "src/spinney/report/templates/style.css").read_text()
    light, dark, printed = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block)) for block in re.findall(r":root {(.*?)}", style, re.S)
    )
    for theme in (light, dark, printed):
        full = {
            name: color if len(color) == 7 else "#" + "".join(2 * part for part in color[1:])
            for name, color in theme.items()
        }
        for text in ("ink", "quiet", "strong", "warm", "real", "danger"):
            for background in ("page", "card"):
                assert contrast(full[text], full[background]) >= 4.5, (text, background)
        for text, background in (("ink", "tint"), ("ink", "danger-soft"), ("danger", "danger-soft"), ("ink", "soft")):
            assert contrast(full[text], full[background]) >= 4.5, (text, background)
    assert contrast("#777777", "#ffffff") < 4.5 < contrast("#767676", "#ffffff")


def test_a_generator_has_a_report() -> None:
    """Nothing but rows can be drawn of it: columns are shares of them, and nothing is supported."""
    schema = sp.Schema({"x": sp.Real(0, 1), "label": sp.Boolean()})
    card = replace(golden("v3-points").card, schema=schema, released={"weights": 4})
    generator = Generator(((np.ones((2, 1)), np.zeros(1)),), np.array([0.25, 0.75]))
    contents = report_contents(GeneratorRelease(generator, card, target="label", noisy_total=100))
    assert {column["statement"] for column in contents.columns} == {"not supported"}
    label = next(column for column in contents.columns if column["name"] == "label")
    assert [bar["share"] for bar in label["bars"]] == pytest.approx([0.25, 0.75], abs=0.02)
    Page(report_html(contents))


def test_a_forest_with_a_target_has_a_graph() -> None:
    text = report_html(report_contents(fitted(target="label").release_))
    assert 'id="graph"' in text
    assert "graph-title" in text


def test_a_release_file_from_elsewhere_is_as_harmless(tmp_path: Path, hostile: Any) -> None:
    """A file whose card was rewritten by hand is refused or shown as text; it cannot inject either way."""
    path, changed = tmp_path / "a.spinney", tmp_path / "b.spinney"
    fitted().save(path)
    with ZipFile(path) as archive, ZipFile(changed, "w") as other:
        for member in archive.namelist():
            content = archive.read(member)
            if member == "card.json":
                content = content.replace(b'"kind"', b'"<script>alert(1)</script>"').replace(b'"u"', b'"<img src=x>"')
            other.writestr(member, content)
    try:
        text = report_html(report_contents(sp.load(changed)))
    except FileError:
        return
    assert "<script" not in text
    assert "<img" not in text
