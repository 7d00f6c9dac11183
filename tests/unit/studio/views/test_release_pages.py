"""Pages of a release: opened by name, path or hand; promise, columns under a condition, pairs, pictures."""

import re
from html import unescape
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

import spinney as sp
from spinney.release.file import file_digest
from spinney_studio.drawings import POLICY
from support.studios import form_token, text_of


def upload(client, name, content, **fields):
    fields = {"form_token": form_token(client, "/releases")} | fields
    return client.post("/releases/upload", data=fields, files={"file": (name, content)})


def test_releases_of_the_workspace_and_of_the_folder_are_listed(get):
    page = get("/releases").text
    assert 'href="/releases/people"' in page
    assert 'href="/releases/at?path=v3-points.spinney"' in page


def test_a_release_alone_shows_its_promise_and_that_its_file_holds(get, studio):
    """No table is needed: promise, verification, budget, schema and card are there, by name and by digest."""
    said = text_of(get("/releases/people"))
    release = sp.load(studio.workspace.release("people").path)
    assert release.card.guarantee in said
    assert "The card and the released numbers agree" in said
    assert "What is not promised" in said
    assert "every column by itself" in said
    digest = file_digest(studio.workspace.release("people").path)
    assert text_of(get(f"/releases/{digest}")).split("file")[0] == said.split("file")[0]


def test_a_release_that_is_not_private_says_so_first(get):
    page = get("/releases/at?path=v3-grid-branded.spinney", follow_redirects=True)
    assert "Nothing is promised to anybody" in text_of(page)
    assert page.text.index('role="alert"') < page.text.index("promise-h")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside.spinney", "outside of the folder"),
        ("/etc/passwd", "outside of the folder"),
        ("missing.spinney", "does not exist"),
        (".", "is a folder"),
        ("", "Name a release file"),
    ],
)
def test_a_path_that_is_no_release_is_told_beside_its_field(client, path, said):
    answer = client.get("/releases/at", params={"path": path})
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert 'aria-invalid="true"' in answer.text


def test_a_link_out_of_the_folder_is_not_followed(client, studio, tmp_path):
    (tmp_path / "secret.spinney").write_bytes(b"x")
    link = studio.workspace.root.folder / "link.spinney"
    link.symlink_to(tmp_path / "secret.spinney")
    try:
        assert client.get("/releases/at", params={"path": "link.spinney"}).status_code == 400
        assert "link.spinney" not in client.get("/releases").text
    finally:
        link.unlink()


@pytest.mark.parametrize(
    "path", ["/releases/none", "/releases/none/columns", f"/releases/{'0' * 64}", "/releases/a%2Fb"]
)
def test_unknown_releases_are_missing_pages(client, path):
    assert client.get(path).status_code in (400, 404)


def test_a_release_that_is_handed_over_is_checked_and_kept(client, get, studio):
    """The same file twice is one release; what it is called does not matter."""
    content = (studio.workspace.root.folder / "v3-moments-mixed.spinney").read_bytes()
    first = upload(client, "from a friend.spinney", content)
    assert first.status_code in (200, 202)
    assert str(first.url).endswith("/releases/from%20a%20friend")
    assert str(upload(client, "other.spinney", content).url) == str(first.url)
    (studio.workspace.releases_folder / "from a friend.spinney").unlink()


def test_damaged_and_forged_files_are_refused_in_clear_words(client, studio):
    """A cut file, a file with a flipped byte, and a card that promises more than its charges."""
    good = (studio.workspace.root.folder / "people.spinney").read_bytes()
    before = sorted(path.name for path in studio.workspace.releases_folder.iterdir())
    forged = good.replace(b'"epsilon":"2"', b'"epsilon":"1"').replace(b'"epsilon": "2"', b'"epsilon": "1"')
    assert forged != good
    for content in (b"", b"nonsense", good[: len(good) // 2], good[:300] + b"\x00" + good[301:], forged):
        answer = upload(client, "damaged.spinney", content)
        assert answer.status_code == 400
        assert "damaged.spinney" in text_of(answer)
        assert ".incoming" not in answer.text
    assert sorted(path.name for path in studio.workspace.releases_folder.iterdir()) == before


def test_an_upload_needs_the_token_and_a_file(client, studio):
    content = (studio.workspace.root.folder / "people.spinney").read_bytes()
    assert upload(client, "x.spinney", content, form_token="wrong").status_code == 403
    assert client.post("/releases/upload", data={"form_token": form_token(client, "/releases")}).status_code == 400


# ------------------------------------------------------------------------------------------------------------- columns


def test_every_column_has_a_picture_and_its_numbers(get, studio):
    page = get("/releases/people/columns")
    release = sp.load(studio.workspace.release("people").path)
    bars = release.error_bars(pairs=False)
    for column in bars.columns:
        assert f'alt="Distribution of {column.name}' in page.text
        for answer in column.answers:
            assert f"{answer.estimate:,.0f}".replace("-0", "0") in page.text


def test_a_condition_shows_the_share_and_the_columns_among_the_rows(get, studio):
    """Figures are those of the library's own answers."""
    page = get("/releases/people/columns", params={"where": "age in 30..40 and sex = male"})
    release = sp.load(studio.workspace.release("people").path)
    wanted = {"age": (30, 40), "sex": "male"}
    share, count = release.proportion(wanted), release.count(wanted)
    said = text_of(page)
    assert f"{100 * share.estimate:.1f}" in said
    assert f"about {count.estimate:,.0f}" in said
    by_region = release.table({"region": list(release.schema["region"].values)}, where=wanted)
    for answer in by_region:
        assert f"{answer.estimate:,.0f}" in said
    rows = [re.findall(r"<td>(.*?)</td>", line) for line in re.findall(r"<tr>(<td>.*?)</tr>", page.text)]
    drawn = [row for row in rows if len(row) == 4]
    assert len(drawn) == 12
    assert all(30 <= int(row[0]) <= 40 and row[1] == "male" for row in drawn)
    assert drawn == [
        row
        for row in (
            re.findall(r"<td>(.*?)</td>", line)
            for line in re.findall(
                r"<tr>(<td>.*?)</tr>", get("/releases/people/columns?where=age+in+30..40+and+sex+%3D+male").text
            )
        )
        if len(row) == 4
    ]


def test_a_column_of_the_condition_is_cut_to_it(get):
    page = get("/releases/people/columns", params={"where": "age in 30..40"})
    ages = page.text.split('aria-label="Numbers of age"')[1].split("</table>")[0]
    labels = [unescape(label) for label in re.findall(r"<bdi>(.*?)</bdi>", ages)]
    ends = [tuple(map(int, label.split(".."))) if ".." in label else (int(label),) * 2 for label in labels]
    assert ends[0][0] == 30
    assert ends[-1][1] == 40
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ends))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("ages = 3", "did you mean 'age'"),
        ("age", "no equals sign"),
        ("age in 40..30", "swap"),
        ("sex = other", "'other'"),
        ("income = ", "empty"),
        ("sex = male and sex = female", "twice"),
        ("x" * 3_000, "at most"),
    ],
)
def test_what_is_wrong_with_a_condition_stands_beside_the_field(get, where, said):
    answer = get("/releases/people/columns", params={"where": where})
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert 'id="where-fault"' in answer.text
    assert "south, coast" in text_of(answer)  # the values, as help


def test_a_tree_picks_rows_that_meet_a_condition(get):
    said = text_of(get("/releases/town/columns", params={"where": "lon > 10.5"}))
    assert "the first that meet the condition are shown" in said


def test_persons_and_points_are_shown_by_their_rows_where_they_have_no_bars(get, studio):
    for name in ("v3-people-linked", "v3-points"):
        digest = file_digest(studio.workspace.root.folder / f"{name}.spinney")
        page = get(f"/releases/{digest}/columns")
        assert page.status_code == 200
        assert "not supported" in text_of(page)


# --------------------------------------------------------------------------------------------------- pairs and pictures


def test_every_pair_can_be_chosen_and_shows_its_table(get, studio):
    """The cells of the chosen pair are the library's own counts."""
    page = get("/releases/people/pairs", params={"first": "sex", "second": "region"})
    links = re.findall(r'class="cell[^"]*" href="\?first=([^&]+)&amp;second=([^#]+)#pair-h"', page.text)
    assert len(links) == 6
    release = sp.load(studio.workspace.release("people").path)
    said = text_of(page)
    for answer in release.table({"sex": ["female", "male"], "region": list(release.schema["region"].values)}):
        assert f"{answer.estimate:,.0f}" in said


@pytest.mark.parametrize(
    "query", [{"first": "sex", "second": "sex"}, {"first": "sex", "second": "no"}, {"first": "", "second": "age"}]
)
def test_wrong_pairs_are_told(get, query):
    answer = get("/releases/people/pairs", params=query)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "people/column/0.svg",
        "people/column/1.svg?where=age%3D30..40",
        "people/pair.svg?first=age&second=sex",
        "people/belief.svg",
        "people/budget.svg",
        "people/graph.svg",
        "people/uncertainty.svg",
        "people/answers.svg?q=count+by+region",
        "town/map/0.svg",
    ],
)
def test_pictures_are_files_that_run_nothing(get, path):
    """SVG with a title, without scripts and references, under a policy of its own that allows its style alone."""
    answer = get(f"/releases/{path}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.headers["content-security-policy"] == POLICY
    assert "immutable" in answer.headers["cache-control"]
    root = ET.fromstring(answer.text)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "title" in tags
    assert not tags & {"script", "foreignObject", "a"}
    assert "style=" not in answer.text
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert not (name.endswith("href") and not value.startswith(("#", "data:image/png")))


def test_the_map_is_as_long_as_on_the_ground(get):
    """At 59.5 degrees north, a degree of longitude is about half as long as one of latitude."""
    root = ET.fromstring(get("/releases/town/map/0.svg").text)
    width, height = (float(root.get(side)) for side in ("width", "height"))
    assert (height - 52) / (width - 72) == pytest.approx(1 / 0.5075, rel=0.02)


@pytest.mark.parametrize(
    "path", ["people/column/99.svg", "people/column/x.svg", "people/map/0.svg", "people/other.svg"]
)
def test_pictures_that_do_not_exist_are_missing(get, path):
    assert get(f"/releases/{path}").status_code in (400, 404)


def test_a_file_that_is_changed_is_another_release(get, studio):
    """The old digest is gone, and what was worked out for it is not shown for the new file."""
    path = studio.workspace.releases_folder / "changing.spinney"
    path.write_bytes((studio.workspace.root.folder / "v3-points.spinney").read_bytes())
    first = text_of(get("/releases/changing"))
    path.write_bytes((studio.workspace.root.folder / "v3-grid-branded.spinney").read_bytes())
    assert text_of(get("/releases/changing")) != first
    path.unlink()
