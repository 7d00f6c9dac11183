"""The ledger's pages: what is spent, requests with approve and deny, the chain, and no password anywhere."""

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.accounts.sqlite import SqliteStore
from support.studios import client_of, form_token, make_studio, send, text_of


@pytest.fixture
def root(tmp_path):
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit="3", delta="1e-5", approval=True)
    ledger.add_population("staff", limit="1")
    ledger.request("0.5", "1e-6", purpose="annual <report>")
    return tmp_path


@pytest.fixture
def studio(root, monkeypatch):
    monkeypatch.delenv("SPINNEY_LEDGER", raising=False)
    return make_studio(root)


@pytest.fixture
def client(studio):
    return client_of(studio)


@pytest.fixture
def key(studio):
    return studio.ledgers.open("people.ledger").key


def number_of(root):
    return sp.Ledger.open(root / "people.ledger", population="default").requests[-1].number


def somebody_else(monkeypatch):
    monkeypatch.setattr(SqliteStore, "user", lambda _self: "keeper")


def test_a_ledger_shows_what_is_spent_and_left(client, key):
    said = text_of(client.get(f"/ledgers/{key}"))
    assert "epsilon left of 3" in said
    assert "A charge needs a request that somebody else has approved" in said
    assert "annual <report>" in said
    assert "staff" in text_of(client.get(f"/ledgers/{key}?population=staff"))
    assert client.get(f"/ledgers/{key}?population=nobody").status_code == 400
    picture = client.get(f"/ledgers/{key}/spent.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "staff" in picture.text


def test_charges_say_who_when_why_and_which_release(client, key, root):
    ledger = sp.Ledger.open(root / "people.ledger", population="staff", purpose="a trial")
    model = sp.KDTreeSynthesizer("0.5").fit(
        np.full((50, 2), 0.3), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)}), ledger=ledger
    )
    model.save(root / "spinney-studio" / "releases" / "trial.spinney")
    page = client.get(f"/ledgers/{key}?population=staff")
    said = text_of(page)
    assert "a trial" in said
    assert ledger.charges[0].user in said
    assert 'href="/releases/trial"' in page.text


def test_a_ledger_is_opened_by_its_path_or_from_a_link(client, key):
    assert str(client.get("/ledgers", params={"place": "people.ledger"}).url).endswith(key)
    assert str(send(client, "/ledgers", {"place": "people.ledger"}).url).endswith(key)
    assert f"/ledgers/{key}" in client.get("/ledgers").text


def test_the_ledger_of_the_machine_is_known(root, tmp_path, monkeypatch):
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.setenv("SPINNEY_LEDGER", str(root / "people.ledger"))
    studio = make_studio(other)
    assert [known.shown for known in studio.ledgers.all()] == [str(root / "people.ledger")]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "Name a ledger"),
        ("../other.ledger", "outside of the folder"),
        ("missing.ledger", "There is no ledger"),
        ("mysql://host/x", "postgresql://"),
    ],
)
def test_places_that_are_no_ledger_are_told(client, place, said):
    answer = send(client, "/ledgers", {"place": place})
    assert answer.status_code == 400
    assert said in text_of(answer)


def test_a_file_that_is_no_ledger_is_told(client, root):
    (root / "notes.txt").write_text("notes")
    assert send(client, "/ledgers", {"place": "notes.txt"}).status_code == 400


def test_no_password_is_ever_shown(client, studio):
    """Neither in pages nor in their addresses, whether or not the server answers."""
    pytest.importorskip("psycopg")
    known = studio.ledgers.open("postgresql://me:hunter2@127.0.0.1:1/ledger")
    assert "hunter2" not in known.shown + known.key
    assert "me@127.0.0.1:1/ledger" in client.get("/ledgers").text
    assert "hunter2" not in client.get("/ledgers").text


def test_a_request_is_confirmed_before_it_is_written(client, key, root):
    before = len(sp.Ledger.open(root / "people.ledger", population="default").entries)
    fields = {"population": "default", "epsilon": "1/4", "delta": "", "purpose": "maps", "table": ""}
    page = send(client, f"/ledgers/{key}/requests", fields, page=f"/ledgers/{key}")
    assert "Ask for this budget?" in text_of(page)
    assert len(sp.Ledger.open(root / "people.ledger", population="default").entries) == before
    done = send(client, f"/ledgers/{key}/requests", {**fields, "confirmed": "yes"}, page=f"/ledgers/{key}")
    assert "pending" in text_of(done)
    request = sp.Ledger.open(root / "people.ledger", population="default").requests[-1]
    assert (str(request.epsilon), request.purpose) == ("1/4", "maps")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"epsilon": "lots"}, "epsilon"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "1", "delta": "2"}, "delta"),
        ({"epsilon": "1", "purpose": ""}, "Say what the release is for"),
    ],
)
def test_wrong_requests_are_told_beside_their_fields(client, key, root, fields, said):
    before = number_of(root)
    given = {"population": "default", "epsilon": "", "delta": "", "purpose": "maps", "table": "", "confirmed": "yes"}
    answer = send(client, f"/ledgers/{key}/requests", {**given, **fields}, page=f"/ledgers/{key}")
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert 'aria-invalid="true"' in answer.text
    assert number_of(root) == before


def test_whoever_asked_cannot_approve(client, key, root):
    """The page offers no button, and the ledger refuses a form that was made by hand."""
    number = number_of(root)
    page = client.get(f"/ledgers/{key}/requests/{number}")
    assert "somebody else has to approve it" in text_of(page)
    assert "/approve" not in page.text
    answer = send(
        client,
        f"/ledgers/{key}/requests/{number}/approve",
        {"confirmed": "yes"},
        page=f"/ledgers/{key}/requests/{number}",
    )
    assert answer.status_code == 400
    assert sp.Ledger.open(root / "people.ledger", population="default").requests[-1].state == "pending"


def test_somebody_else_approves_after_a_confirmation(client, key, root, monkeypatch):
    somebody_else(monkeypatch)
    number = number_of(root)
    page = f"/ledgers/{key}/requests/{number}"
    unsure = send(client, f"{page}/approve", {}, page=page)
    assert unsure.status_code == 400
    assert "Tick the box" in text_of(unsure)
    done = send(client, f"{page}/approve", {"confirmed": "yes"}, page=page)
    assert "approved" in text_of(done)
    assert "keeper" in text_of(done)
    again = client.post(f"{page}/approve", data={"form_token": form_token(client, "/ledgers"), "confirmed": "yes"})
    assert again.status_code == 400


def test_a_denial_needs_a_reason(client, key, root, monkeypatch):
    somebody_else(monkeypatch)
    page = f"/ledgers/{key}/requests/{number_of(root)}"
    assert send(client, f"{page}/deny", {"confirmed": "yes", "why": ""}, page=page).status_code == 400
    done = send(client, f"{page}/deny", {"confirmed": "yes", "why": "too much"}, page=page)
    assert "denied" in text_of(done)
    assert "too much" in text_of(done)


def test_unsafe_actions_need_the_token(client, key, root):
    page = f"/ledgers/{key}/requests/{number_of(root)}"
    for action in (f"{page}/approve", f"{page}/deny", f"/ledgers/{key}/requests", "/ledgers"):
        assert client.post(action, data={"confirmed": "yes"}).status_code == 403
        assert client.post(action, data={"form_token": "x", "confirmed": "yes"}).status_code == 403


@pytest.mark.parametrize("path", ["/ledgers/none", "/ledgers/none/verify", "/ledgers/none/requests/1"])
def test_unknown_ledgers_are_missing(client, path):
    assert client.get(path).status_code == 404


def test_unknown_requests_are_told(client, key):
    assert client.get(f"/ledgers/{key}/requests/99").status_code == 400
    assert client.get(f"/ledgers/{key}/requests/x").status_code == 400


def test_the_chain_is_verified_against_a_head(client, key, root):
    head = sp.Ledger.open(root / "people.ledger", population="default").head
    assert "The ledger is whole" in text_of(client.get(f"/ledgers/{key}/verify", params={"head": head}))
    assert "no head was given" in text_of(client.get(f"/ledgers/{key}/verify"))
    wrong = client.get(f"/ledgers/{key}/verify", params={"head": "3:" + "0" * 64})
    assert "It is not" in text_of(wrong)
    assert client.get(f"/ledgers/{key}/verify", params={"head": "nonsense"}).status_code in (200, 400)
