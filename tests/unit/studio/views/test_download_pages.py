"""Downloads: rows that are those of the library, streamed; the report under a policy of its own; faults beforehand."""

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney_studio import views as draw_rows
from spinney_studio.views import PART_ROWS, checked_draw, parts_of_rows
from support.studios import text_of


@pytest.fixture(scope="module")
def release(studio):
    return sp.load(studio.workspace.release("people").path)


def test_rows_are_those_of_the_seed(get, release):
    """The same rows as `sample` with the same seed and conditions, through a process of their own."""
    asked = {"rows": "400", "seed": "7", "where": "age in 30..40", "balance": "sex=0.9"}
    wanted = release.sample(400, seed=7, where={"age": (30, 40)}, balance={"sex": 0.9}, frame="pyarrow")
    answer = get("/releases/people/rows", params={**asked, "form": "csv"})
    assert answer.headers["content-disposition"] == 'attachment; filename="people-synthetic.csv"'
    as_csv = pacsv.read_csv(io.BytesIO(answer.content))
    assert as_csv.column_names == wanted.column_names
    assert as_csv["age"].to_pylist() == wanted["age"].to_pylist()
    assert as_csv["region"].to_pylist() == wanted["region"].to_pylist()
    assert as_csv["income"].to_pylist() == wanted["income"].to_pylist()


def test_linked_tables_come_in_an_archive(studio, tmp_path):
    """A file for each table, with the rows that `sample` gives."""
    opened = studio.shelf.by_path("v3-people-linked.spinney")
    asked = {
        "path": opened.path,
        "digest": opened.digest,
        "rows": 30,
        "seed": 1,
        "where": "",
        "balance": "",
        "parts": 1,
    }
    with (tmp_path / "rows.zip").open("wb") as file:
        draw_rows.draw({**asked, "form": "parquet"}, file)
    archive = zipfile.ZipFile(tmp_path / "rows.zip")
    wanted = sp.load(opened.path).sample(30, seed=1, frame="pyarrow")
    assert archive.namelist() == [f"{name}.parquet" for name in wanted]
    for name, table in wanted.items():
        assert pq.read_table(io.BytesIO(archive.read(f"{name}.parquet"))).equals(table)


def test_many_rows_are_written_part_by_part(studio, release, monkeypatch, tmp_path):
    """Parts are drawn one after the other, and are as many rows as were asked for, in both formats."""
    at = str(studio.workspace.release("people").path)
    sizes = []
    whole = draw_rows.write_rows

    def watched(tables, target, form):
        def counted():
            for table in tables:
                sizes.append(table.num_rows)
                yield table

        whole(counted(), target, form)

    monkeypatch.setattr(draw_rows, "write_rows", watched)
    digest = studio.shelf.by_key("people").digest
    for form in ("csv", "parquet"):
        asked = {"path": at, "digest": digest, "rows": 1_000, "seed": 3, "where": "", "balance": "", "parts": 4}
        with (tmp_path / form).open("wb") as file:
            draw_rows.draw({**asked, "form": form}, file)
    assert sizes == [250] * 8
    wanted = pa.concat_tables(list(release.sample(1_000, seed=3, parts=4, frame="pyarrow")))
    assert pq.read_table(tmp_path / "parquet").equals(wanted)
    assert pacsv.read_csv(tmp_path / "csv").num_rows == 1_000
    assert parts_of_rows(PART_ROWS) == 1
    assert parts_of_rows(10_000_000) == 10_000_000 // PART_ROWS


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"rows": "many"}, "not a whole number"),
        ({"rows": "-3"}, "not between 0"),
        ({"rows": "1.5"}, "not a whole number"),
        ({"rows": "1e99"}, "not between 0"),
        ({"seed": "x"}, "not a whole number"),
        ({"where": "ages = 3"}, "did you mean 'age'"),
        ({"where": "age in 30..40", "balance": "age=0.5"}, "age"),
        ({"balance": "sex"}, "no equals sign"),
        ({"balance": "sex=2"}, "sex"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_drawn(get, query, said):
    answer = get("/releases/people/rows", params={"rows": "10", **query})
    assert answer.status_code == 400
    assert "content-disposition" not in answer.headers
    assert said in text_of(answer)


def test_another_form_is_refused(get):
    assert get("/releases/people/rows", params={"form": "xlsx"}).status_code == 400


def test_a_tree_takes_no_conditions_for_rows(studio):
    opened = studio.shelf.by_key("town")
    found = checked_draw(*opened.at, (("where", "lon > 10.5"), ("balance", "x=1"), ("rows", "1e3")))
    assert set(found["faults"]) == {"where", "balance"}
    assert found["rows"] == 1_000


def test_as_many_rows_as_the_table_had_where_none_are_named(studio):
    found = checked_draw(*studio.shelf.by_key("people").at, (("rows", ""),))
    assert (found["rows"], found["seed"], found["faults"]) == (3_000, None, {})


def test_only_so_many_draw_at_once(client, studio):
    assert studio.beside.drawing.acquire(blocking=False)
    assert studio.beside.drawing.acquire(blocking=False)
    try:
        answer = client.get("/releases/people/rows", params={"rows": "5"})
    finally:
        studio.beside.drawing.release(2)
    assert answer.status_code == 503


def test_a_draw_that_fails_is_no_file(client, studio, monkeypatch):
    """What the process says is told, and nothing comes down as rows."""
    from spinney_studio import release as download_pages

    def changed(_call, _opened, _given):
        return {"faults": {}, "rows": 5, "seed": 1, "where": "ages=3", "balance": "", "parts": 1, "is_several": False}

    monkeypatch.setattr(download_pages, "_checked", changed)
    answer = client.get("/releases/people/rows")
    assert answer.status_code == 400
    assert "did you mean 'age'" in text_of(answer)
    assert studio.beside.drawing.acquire(blocking=False)
    studio.beside.drawing.release()


def test_the_file_the_card_and_the_report_can_be_taken_away(get, studio, release):
    path = studio.workspace.release("people").path
    assert get("/releases/people/release.spinney").content == path.read_bytes()
    assert get("/releases/people/card.txt").text.strip() == str(release.card)
    twin = json.loads(get("/releases/people/report.json", params={"title": "Persons"}).text)
    assert twin["title"] == "Persons"
    assert twin["promise"]["epsilon"] == str(release.card.epsilon)
    saved = get("/releases/people/report.html", params={"title": "<i>Persons</i>", "save": "yes"})
    assert saved.headers["content-disposition"].startswith("attachment")
    assert "&lt;i&gt;Persons" in saved.text


def test_the_report_is_a_page_of_its_own_in_a_sandbox(get):
    answer = get("/releases/people/report.html", params={"title": "Persons"})
    policy = answer.headers["content-security-policy"]
    assert policy.endswith("; sandbox")
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<h1>Persons</h1>" in answer.text


def test_texts_of_a_report_have_an_end(get):
    assert get("/releases/people/report.json", params={"title": "x" * 5_000}).status_code == 400
