"""The studio opens, keeps and shows nothing but what it was asked to: paths, uploads, names, ledgers, workspaces."""

import json
import stat

import pytest

import spinney as sp
from support.studio_way import ROWS, begin, revision, settled, state
from support.studios import client_of, fields_of, form_token, make_studio, send, text_of


@pytest.mark.parametrize(
    "path", ["../out.csv", "/etc/passwd", "link.csv", "folder/../../out.csv", "linked/*.csv", "\0"]
)
def test_nothing_outside_of_the_opened_folder_is_opened(tmp_path, path):
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "out.csv").write_text(ROWS)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.csv").write_text(ROWS)
    (root / "link.csv").symlink_to(tmp_path / "out.csv")
    (root / "linked").symlink_to(tmp_path / "outside")
    client = client_of(make_studio(root))
    answer = send(client, "/tables/open", {"path": path}, page="/tables")
    assert answer.status_code == 400
    assert "link" not in text_of(client.get("/tables"))
    assert client.get("/tables?folder=..").status_code == 400
    assert client.get("/tables?folder=linked").status_code == 400


def test_files_that_a_schema_names_lie_in_the_opened_folder_too(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "people.csv").write_text(ROWS)
    (tmp_path / "codes.txt").write_text("secret\n")
    client = client_of(make_studio(root))
    draft = begin(client)
    page = f"{draft}/schema/text"
    text = '[columns.x]\ntype = "category"\nvalues_from = "../codes.txt"\n[columns.y]\ntype = "ignore"\n'
    answer = send(client, page, {"revision": revision(client, page), "schema": text, "do": "check"})
    assert "outside of the folder" in text_of(answer)
    assert "secret" not in answer.text


def test_a_file_that_is_sent_is_kept_for_its_owner_alone(studio, client):
    token = form_token(client)
    sent = {"file": ("../../tmp/my people.csv", ROWS.encode(), "text/csv")}
    answer = client.post("/tables/upload", data={"form_token": token}, files=sent)
    assert answer.url.path.endswith("/schema")
    (kept,) = studio.workspace.tables_folder.iterdir()
    assert kept.name == "my people.csv"
    assert kept.read_text() == ROWS
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_file_is_not_kept_without_the_token_or_beyond_the_limit(studio, client):
    sent = {"file": ("people.csv", ROWS.encode(), "text/csv")}
    assert client.post("/tables/upload", data={"form_token": "no"}, files=sent).status_code == 403
    assert client.post("/tables/upload", files=sent).status_code == 403
    wrong = {"file": ("people.exe", ROWS.encode(), "text/csv")}
    assert client.post("/tables/upload", data={"form_token": form_token(client)}, files=wrong).status_code == 400
    studio.largest_upload = 1 << 10
    small = client_of(studio)
    token = form_token(small)
    assert small.post("/tables/upload", data={"form_token": token}, files=sent).status_code == 413
    body = b'--b\r\ncontent-disposition: form-data; name="form_token"\r\n\r\n' + token.encode() + b"\r\n"
    body += b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' + ROWS.encode()

    def chunks():  # without a length, and without an end
        yield body[:900]
        yield body[900:]

    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert small.post("/tables/upload", content=chunks(), headers=headers).status_code == 413
    assert client.post("/tables/upload", content=body[:1500], headers=headers).status_code in (400, 403)
    late = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\nx\r\n'
    late += b'--b\r\ncontent-disposition: form-data; name="form_token"\r\n\r\n' + form_token(client).encode()
    late += b"\r\n--b--\r\n"  # nothing is written before the token was seen
    assert client.post("/tables/upload", content=late, headers=headers).status_code == 403
    assert list(studio.workspace.tables_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [("wrong.csv", b"\x89PNG\r\n\x00\x00garbage\xff\xfe"), ("x.csv.gz", b"no gzip"), ("a.duckdb", b"anything")],
)
def test_a_sent_file_that_cannot_be_read_is_told(client, name, content):
    """A page with what to do, not an unexpected error."""
    answer = client.post("/tables/upload", data={"form_token": form_token(client)}, files={"file": (name, content)})
    assert answer.status_code in (200, 400)
    assert name in text_of(answer)
    assert "bug in Spinney" not in text_of(answer)


def test_a_duckdb_file_reads_nothing_but_itself(tmp_path, client):
    """Neither by a view over a file nor by a name that is a path."""
    duckdb = pytest.importorskip("duckdb")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.csv"
    outside.write_text("secret\n1\n2\n")
    with duckdb.connect(str(tmp_path / "views.duckdb")) as connection:
        connection.execute(f"CREATE VIEW stolen AS SELECT * FROM read_csv('{outside}')")
        connection.execute("CREATE TABLE own AS SELECT 1.5 AS x")
    for name in ("stolen", str(outside), f'"{outside}"'):
        answer = send(client, "/tables/open", {"path": "views.duckdb", "table": name}, page="/tables")
        assert answer.status_code == 400, name
        assert "secret" not in answer.text.replace(str(outside), "")
    assert begin(client, "views.duckdb", table="own")


def test_a_name_fits_into_a_file_name(client):
    """In bytes, with room for endings: a release that could not be written would be lost after its charge."""
    draft = begin(client)
    state(client, draft)
    settled(client, f"{draft}/schema")
    page = f"{draft}/budget"
    fields = {"revision": revision(client, page), "epsilon": "1", "unit": "replace-one", "ledger": "none"}
    answer = send(client, page, fields | {"release": "語" * 78})
    assert answer.status_code == 400
    assert "too long" in text_of(answer)


def test_only_ledgers_that_are_offered_can_be_chosen(tmp_path, client):
    """A path in the choice is no way around the opened folder, and passwords are not kept."""
    outside = tmp_path.parent / f"{tmp_path.name}-other.ledger"
    sp.Ledger.create(str(outside), limit=3)
    draft = begin(client)
    state(client, draft)
    settled(client, f"{draft}/schema")
    page = f"{draft}/budget"
    fields = {"revision": revision(client, page), "epsilon": "1", "unit": "replace-one"}
    for place in (str(outside), "/etc/passwd", "\0"):
        fields["revision"] = revision(client, page)
        answer = send(client, page, fields | {"ledger": json.dumps([place, "default"])})
        assert answer.status_code == 400
        assert "Choose one of the ledgers" in text_of(answer)
    fields["revision"] = revision(client, page)
    secret = {"ledger": "other", "place": "postgresql://bob:HUNTER2@127.0.0.1:1/ledger"}
    answer = send(client, page, fields | secret)
    assert answer.status_code == 400
    assert "HUNTER2" not in answer.text + client.get(page).text
    assert not any("HUNTER2" in path.read_text(errors="ignore") for path in tmp_path.rglob("*.json"))


def test_only_schema_files_are_shown(client):
    """A table of the opened folder is not put into the text of a schema."""
    draft = begin(client)
    page = f"{draft}/schema/text"
    answer = send(client, page, {"revision": revision(client, page), "do": "file", "file": "people.csv"})
    assert answer.status_code == 400
    assert ROWS.split("\n")[1] not in answer.text


def test_a_workspace_that_is_open_to_others_is_refused(tmp_path):
    """Whoever made the folder beforehand might read links and tables in it."""
    (tmp_path / "spinney-studio").mkdir()
    (tmp_path / "spinney-studio").chmod(0o777)
    with pytest.raises(sp.SpinneyError, match="open to others"):
        make_studio(tmp_path)


def test_the_first_ledger_is_a_new_one(client):
    """Where there is none to choose from, making one is what the form begins with."""
    draft = begin(client)
    state(client, draft)
    settled(client, f"{draft}/schema")
    assert fields_of(client.get(f"{draft}/budget"), f"{draft}/budget")["ledger"] == "new"
