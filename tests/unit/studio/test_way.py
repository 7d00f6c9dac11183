"""The whole way through the studio without a browser: a table, its schema, its budget, the confirmation, a release."""

import json
import re
import stat
import tomllib
from fractions import Fraction
from html import unescape

import pytest

import spinney as sp
from spinney.report.parts import largest_guess, percent
from support.studio_way import ROWS, ask, begin, checked, columns, revision, settled, state
from support.studios import fields_of, form_token, send, text_of


@pytest.fixture
def planned(client):
    """A draft that only has to be confirmed, paid for by a new ledger."""
    draft = checked(client)
    ask(client, draft, ledger="new", new_name="people", new_limit="2", purpose="a test")
    assert "What epsilon 1 buys" in text_of(settled(client, f"{draft}/budget"))
    return draft


def spend(client, draft, given_revision=None):
    page = f"{draft}/confirm"
    return client.post(
        f"{draft}/spend",
        data={"form_token": form_token(client, page), "revision": given_revision or revision(client, page)},
    )


def ledger_of(studio):
    return sp.Ledger.open(studio.workspace.ledgers_folder / "people.ledger")


def test_from_a_table_to_a_release(studio, client, planned):
    """The confirmation names the charge, the population and what will remain; then the release is there, and paid."""
    said = text_of(client.get(f"{planned}/confirm"))
    assert "Spend epsilon 1 on people?" in said
    assert "Population default" in said
    assert "Spent before 0 of 2" in said
    assert "Will remain 1 of 2" in said
    assert ledger_of(studio).spent == 0
    job = spend(client, planned).url.path
    assert "is made" in text_of(settled(client, job))
    assert ledger_of(studio).spent == 1
    (release,) = studio.workspace.releases()
    assert release.name == "people"
    assert release.origin["purpose"] == "a test"
    assert release.origin["rows"] == 2_000
    loaded = sp.load(release.path)
    assert loaded.card.epsilon == 1
    assert ledger_of(studio).charges[0].release is not None
    assert "Epsilon 1 was charged" in text_of(client.get(job))


def test_the_report_knows_what_was_typed_in_the_studio(studio, client, planned, monkeypatch):
    """The ledger, the purpose, who and when: all that the studio has on record answers the questions of a report."""
    monkeypatch.setattr(studio.beside, "answer", lambda _title, work, *asked, **_: work(*asked))
    settled(client, spend(client, planned).url.path)
    before = json.loads(client.get("/releases/people/report.json").text)
    assert before["promise"]["together"]["epsilon"] == "1", "the ledger is read again once it was charged"
    draft = checked(client)
    choice = fields_of(client.get(f"{draft}/budget"), f"{draft}/budget")
    first = re.search(r'name="ledger" id="ledger-first" value="([^"]+)"', client.get(f"{draft}/budget").text)[1]
    ask(client, draft, **choice | {"ledger": unescape(first), "purpose": "another test", "epsilon": "1"})
    settled(client, f"{draft}/budget")
    settled(client, spend(client, draft).url.path)
    assert ledger_of(studio).spent == 2
    of_two, of_one = percent(largest_guess(Fraction(2))), percent(largest_guess(Fraction(1)))
    for name, purpose in (("people", "a test"), ("people-2", "another test")):
        found = json.loads(client.get(f"/releases/{name}/report.json").text)
        assert found["account"]["ledger"]["has_this"]
        assert found["stated"]["purpose"] == purpose
        assert found["promise"]["together"]["epsilon"] == "2"
        asked = {line["question"]: line for line in (*found["nist"], *found["board"])}
        for question in (
            "For which purpose?",
            "Who made the release, and when?",
            "How much more may be released of these people?",
            "Were parameters tuned on the private table?",
            "Is there a limit over all releases of this table?",
            "What was collected, from whom, and for which purpose?",
        ):
            assert asked[question]["source"] != "not known", question
        shown = text_of(client.get(f"/releases/{name}"))
        assert -1 < shown.index(of_two) < shown.index(of_one), "what all releases promise comes first"
        form = fields_of(client.get(f"/releases/{name}/downloads"), f"/releases/{name}/report.html")
        assert (form["purpose"], form["ledger"]) == (purpose, "with")
    page = text_of(client.get("/releases/people/report.html"))
    assert "no ledger was given" not in page
    assert -1 < page.index(of_two) < page.index(of_one)
    bare = json.loads(client.get("/releases/people/report.json", params={"ledger": "without"}).text)
    assert bare["account"]["ledger"] is None
    assert (
        "It was made on 2" in next(line for line in bare["board"] if line["question"].startswith("Who made"))["answer"]
    )


def test_a_person_that_numbers_rows_is_told_to_the_holder(studio, client):
    """The page of the schema says so, beside the key that repeats, and that this is for the holder alone."""
    of = [number // 3 for number in range(300)]
    rows = "\n".join(f"{number},{9 * person},{'mf'[(person * 7919) % 13 % 2]}" for number, person in enumerate(of))
    (studio.workspace.root.folder / "panel.csv").write_text(f"rownames,nr,sex\n{rows}\n")
    draft = begin(client, "panel.csv")
    text = (
        '[columns.rownames]\ntype = "identifier"\n[columns.nr]\ntype = "integer"\nlow = 0\nhigh = 9999\n'
        '[columns.sex]\ntype = "category"\nvalues = ["f", "m"]\n[person]\ncolumn = "rownames"\nmost_rows = 9\n'
    )
    page = f"{draft}/schema"
    send(client, f"{page}/text", {"revision": revision(client, page), "do": "check", "schema": text})
    said = text_of(settled(client, page))
    assert "'rownames' is stated as the person, and its values never repeat" in said
    assert "'nr': values repeat as keys of persons do" in said
    assert "for you alone" in said


def test_a_ledger_that_cannot_be_read_is_not_called_none(studio, client, planned, monkeypatch):
    monkeypatch.setattr(studio.beside, "answer", lambda _title, work, *asked, **_: work(*asked))
    settled(client, spend(client, planned).url.path)
    (studio.workspace.ledgers_folder / "people.ledger").unlink()
    assert "cannot be read" in text_of(client.get("/releases/people"))
    answer = client.get("/releases/people/report.html")
    assert answer.status_code == 400
    assert "without the ledger" in text_of(answer)
    assert client.get("/releases/people/report.json", params={"ledger": "without"}).status_code == 200


def test_the_same_confirmation_twice_charges_once(studio, client, planned):
    """From two tabs: both end at one job."""
    page = f"{planned}/confirm"
    fields = {"form_token": form_token(client, page), "revision": revision(client, page)}
    first, second = (client.post(f"{planned}/spend", data=fields) for _ in range(2))
    assert first.url == second.url
    settled(client, first.url.path)
    assert ledger_of(studio).spent == 1
    assert len(ledger_of(studio).charges) >= 1
    assert len(studio.workspace.releases()) == 1
    assert len(studio.workspace.jobs()) == 1
    again = client.post(f"{planned}/spend", data=fields)
    assert again.url == first.url
    assert ledger_of(studio).spent == 1


def test_a_confirmation_of_an_older_draft_is_refused(studio, client, planned):
    """The budget was changed in another tab after the confirmation was loaded: nothing is spent."""
    seen = revision(client, f"{planned}/confirm")
    ledger = json.dumps([str(studio.workspace.ledgers_folder / "people.ledger"), "default"])
    ask(client, planned, ledger=ledger, epsilon="1/2")
    settled(client, f"{planned}/budget")
    answer = spend(client, planned, given_revision=seen)
    assert answer.status_code == 409
    assert ledger_of(studio).spent == 0
    assert studio.workspace.jobs() == []


def test_a_form_of_an_older_schema_is_told_and_not_kept(client):
    draft = begin(client)
    seen = revision(client, f"{draft}/schema")
    state(client, draft, columns(high="20"), do="save")
    answer = send(client, f"{draft}/schema", {"revision": seen, "do": "save", **columns(high="30")})
    assert answer.status_code == 409
    assert "changed in another tab" in text_of(answer)
    assert 'value="20"' in answer.text
    assert 'value="30"' not in client.get(f"{draft}/schema").text


def test_all_faults_of_a_schema_are_told_at_once_beside_their_fields(client):
    draft = begin(client)
    answer = state(client, draft, columns(low="", high="") | {"c1.low": "many", "c1.high": "1"})
    said = text_of(answer)
    assert "2 faults to mend" in said
    assert 'href="#c0-low"' in answer.text
    assert "column 'y': Real: low='many' is not a number" in said  # in the list
    assert "Low='many' is not a number" in said  # beside the field
    assert 'id="c1-low" name="c1.low" value="many"' in answer.text
    assert answer.text.count('aria-invalid="true"') == 2


def test_a_fault_stands_beside_the_field_that_it_is_about(client):
    draft = begin(client)
    answer = state(client, draft, columns(high=""))
    assert 'id="c0-high-fault"' in answer.text
    assert 'id="c0-low-fault"' not in answer.text
    answer = state(client, draft, columns(step="tiny"))
    assert 'id="c0-step-fault"' in answer.text
    answer = state(client, draft, columns(type="category", values=""))
    assert 'id="c0-values-fault"' in answer.text


def test_faults_of_the_table_stand_beside_its_columns(tmp_path, client):
    (tmp_path / "other.csv").write_text("x,y\n1,2\n,3\n")
    draft = begin(client, "other.csv")
    state(client, draft)
    answer = settled(client, f"{draft}/schema")
    assert "1 fault to mend" in text_of(answer)
    assert 'id="c0-type-fault"' in answer.text
    assert client.get(f"{draft}/budget").url.path == f"{draft}/schema"


def test_blanks_can_be_left_to_private_estimates(client):
    draft = begin(client)
    state(client, draft, columns(low="", high=""), do="private")
    answer = settled(client, f"{draft}/schema")
    assert "The table fits the schema" in text_of(answer)
    assert "estimated privately" in text_of(answer)
    assert 'bounds = "private"' in client.get(f"{draft}/schema.toml").text


def test_the_schema_can_be_edited_as_text_and_keeps_what_the_form_does_not_know(client):
    draft = begin(client)
    page = f"{draft}/schema/text"
    text = client.get(f"{draft}/schema.toml").text
    assert text.startswith("# A Spinney schema")
    stated = (
        '[columns.x]\ntype = "real"\nlow = 0\nhigh = 10\nbits = 8\n[columns.y]\ntype = "real"\nlow = 0\nhigh = 10\n'
    )
    stated += '[[rules]]\ntype = "at-most"\ncolumn = "x"\nother = "y"\n'
    send(client, page, {"revision": revision(client, page), "schema": stated, "do": "save"})
    state(client, draft, columns(high="12"), do="save")
    kept = sp.Schema.from_dict(tomllib.loads(client.get(f"{draft}/schema.toml").text))
    assert kept["x"].bits == 8
    assert kept["x"].high == 12
    assert len(kept.rules) == 1


ODD = """\
[columns."odd \\u202ename"]
type = "category"
values = ["a b", "<i>", "line\\u0007", "\\""]
other = "rest"

[columns.born]
type = "date"
low = 1900-01-01
high = 2020-12-31
nullable = true

[columns.amount]
type = "real"
low = -1.5
high = 1e6
multiple_of = 0.01

[columns.code]
type = "category"
values = "private"

[columns.when]
type = "datetime"
bounds = "private"

[columns.owner]
type = "identifier"

[person]
column = "owner"
most_rows = 50
order = "born"
"""


@pytest.mark.parametrize("page", ["schema", "schema/text"])
def test_a_form_that_is_sent_as_it_was_loaded_changes_nothing(client, page):
    """Values of several lines, signs that are not printable, dates and steps: all come back as they were."""
    draft = begin(client)
    text = f"{draft}/schema/text"
    send(client, text, {"revision": revision(client, text), "schema": ODD, "do": "save"})
    place = f"{draft}/{page}"
    client.post(place, data={**fields_of(client.get(place), place), "do": "save"})
    kept = tomllib.loads(client.get(f"{draft}/schema.toml").text)
    assert {name: kept["columns"][name] for name in tomllib.loads(ODD)["columns"]} == tomllib.loads(ODD)["columns"]
    assert kept["person"] == tomllib.loads(ODD)["person"]


def test_text_that_is_no_toml_is_told_and_kept(client):
    draft = begin(client)
    page = f"{draft}/schema/text"
    answer = send(client, page, {"revision": revision(client, page), "schema": "columns = [", "do": "check"})
    assert "not valid TOML" in text_of(answer)
    assert "columns = [" in answer.text


def test_all_faults_of_a_budget_are_told_at_once(client):
    draft = checked(client)
    answer = ask(client, draft, epsilon="much", delta="2", ledger="", release="a/b")
    assert answer.status_code == 400
    assert "4 faults to mend" in text_of(answer)
    for name in ("epsilon", "delta", "release"):
        assert f'id="{name}-fault"' in answer.text
    assert 'id="ledger-fault"' in answer.text
    assert 'value="much"' in client.get(f"{draft}/budget").text


def test_a_ledger_with_too_little_left_is_told_before_the_confirmation(tmp_path, client):
    path = tmp_path / "small.ledger"
    sp.Ledger.create(path, limit="1/2")
    draft = checked(client)
    answer = ask(client, draft, ledger=json.dumps([str(path), "default"]))
    assert answer.status_code == 400
    assert 'id="ledger-fault"' in answer.text
    assert "0.5" in text_of(answer)
    assert client.get(f"{draft}/confirm").url.path != f"{draft}/spend"
    assert sp.Ledger.open(path).spent == 0


def test_with_add_remove_the_number_of_rows_is_stated_and_not_counted(client):
    draft = checked(client)
    answer = ask(client, draft, unit="add-remove")
    assert answer.status_code == 400
    assert "state a public guess" in text_of(answer)
    ask(client, draft, unit="add-remove", rows="3,000")
    answer = settled(client, f"{draft}/budget")
    assert "buys for 3,000 rows" in text_of(answer)
    assert "2,000" not in text_of(answer)


def test_a_fit_that_is_refused_tells_the_librarys_message_and_that_nothing_was_charged(
    tmp_path, studio, client, planned
):
    """The table was changed after the check: a value is missing where none may be."""
    (tmp_path / "people.csv").write_text("x,y\n1,2\n,3\n")
    answer = settled(client, spend(client, planned).url.path)
    assert "was not made" in text_of(answer)
    assert "column 'x'" in text_of(answer)
    assert "It was not charged" in text_of(answer)
    assert ledger_of(studio).spent == 0
    assert studio.workspace.releases() == []
    again = send(client, f"{answer.url.path}/again", {}, page=answer.url.path)
    assert again.url.path.endswith("/schema")
    assert again.url.path != f"{planned}/schema"


def test_no_value_of_the_table_is_in_a_page_before_the_release(tmp_path, studio, client):
    (tmp_path / "secret.csv").write_text("x,name\n7.654321,Ottilie\n8.765432,Wendelin\nnone,Ottilie\n")
    draft = begin(client, "secret.csv")
    fields = columns() | {"c1.name": "name", "c1.type": "category", "c1.values": "A\nB"}
    answers = [client.get(f"{draft}/schema"), state(client, draft, fields)]
    answers += [settled(client, f"{draft}/schema"), client.get(f"{draft}/schema.toml"), client.get("/")]
    for answer in answers:
        for value in ("7.65", "8.76", "Ottilie", "Wendelin"):
            assert value not in answer.text
    kept = [path for path in studio.workspace.folder.rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        assert b"Ottilie" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_csv_of_another_spelling_is_opened_with_what_is_said_about_it(tmp_path, client):
    (tmp_path / "semicolons.csv").write_text("x;y\n1,5;2,5\n2,5;3,5\n")
    draft = begin(client, "semicolons.csv", delimiter=";", decimal=",")
    assert "double in the file" in text_of(client.get(f"{draft}/schema"))
    state(client, draft)
    assert "The table fits the schema" in text_of(settled(client, f"{draft}/schema"))


def test_a_folder_a_pattern_and_a_duckdb_file_are_opened(tmp_path, client):
    (tmp_path / "visits").mkdir()
    for month in ("01", "02"):
        (tmp_path / "visits" / f"2024-{month}.csv").write_text(ROWS)
    for path in ("visits", "visits/2024-*.csv"):
        draft = begin(client, path)
        state(client, draft)
        assert "It has 4,000 rows" in text_of(settled(client, f"{draft}/schema"))
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(f"create table people as select * from read_csv('{tmp_path / 'people.csv'}')")
    draft = begin(client, "town.duckdb", table="people")
    state(client, draft)
    assert "It has 2,000 rows" in text_of(settled(client, f"{draft}/schema"))
    assert send(client, "/tables/open", {"path": "town.duckdb"}, page="/tables").status_code == 400
    wrong = send(client, "/tables/open", {"path": "town.duckdb", "table": "none"}, page="/tables")
    assert "has no table 'none'" in text_of(wrong)


def test_persons_are_stated_and_counted(tmp_path, client):
    lines = "\n".join(f"{n % 400},{n % 7},{n % 10}" for n in range(1_200))
    (tmp_path / "visits.csv").write_text(f"patient_id,day,score\n{lines}\n")
    draft = begin(client, "visits.csv")
    assert "patient_id may say whose row it is" in text_of(client.get(f"{draft}/schema"))
    fields = {}
    for number, (name, kind) in enumerate((("patient_id", "identifier"), ("day", "integer"), ("score", "integer"))):
        entry = {"name": name, "type": kind, "bounds": "stated", "low": "0", "high": "10"}
        fields |= {f"c{number}.{key}": value for key, value in entry.items()}
    fields |= {"person.column": "patient_id", "person.most_rows": "10", "person.order": "day"}
    state(client, draft, fields)
    answer = text_of(settled(client, f"{draft}/schema"))
    assert "It has 1,200 rows of 400 persons" in answer
    ask(client, draft, ledger="new", new_name="patients", new_delta="1e-3")
    assert "buys for 400 persons" in text_of(settled(client, f"{draft}/budget"))
    assert "replace-one-person" in text_of(client.get(f"{draft}/confirm"))


def test_the_made_up_town_is_offered_with_its_schema(studio, client):
    answer = send(client, "/tables/town", {}, page="/")
    assert answer.url.path.endswith("/schema")
    assert "faults to mend" not in text_of(answer)
    assert (studio.workspace.tables_folder / "town.csv").exists()
    assert Fraction(1) == ledger_free(studio)


def ledger_free(studio):
    """No ledger is made before somebody asks for it."""
    return Fraction(1) if studio.workspace.ledgers() == [] else Fraction(0)
