"""Who comes into the studio: with a link, once, from this machine's own pages."""

import stat

import pytest
from starlette.responses import Response

from spinney.errors import FileError, ParameterError
from spinney_studio import server as app
from spinney_studio.pages import Pages
from spinney_studio.security import HEADERS, POLICY, Doors, cookie_name, is_same
from spinney_studio.server import listening
from spinney_studio.workspace import Root, Workspace
from support.studios import ORIGIN, PORT, client_of, make_studio, text_of


@pytest.fixture
def studio(tmp_path):
    return make_studio(tmp_path)


def test_a_link_opens_the_studio_once(studio):
    """The first use is exchanged for a cookie; the second, also of another browser, is refused with a way on."""
    link = studio.new_link()
    first, second = client_of(studio, enters=False), client_of(studio, enters=False)
    assert first.get("/").status_code == 403
    answer = first.get(link)
    assert answer.status_code == 200
    assert first.get("/").status_code == 200
    refused = second.get(link)
    assert refused.status_code == 403
    assert "Each link opens the studio once" in text_of(refused)
    assert "Press Enter in the terminal" in text_of(refused)
    assert second.get("/").status_code == 403


def test_the_cookie_is_the_only_one_and_closed_to_scripts_and_other_sites(studio):
    answer = client_of(studio, enters=False).get(studio.new_link())
    cookies = answer.headers.get_list("set-cookie")
    assert len(cookies) == 1
    attributes = {part.strip().lower() for part in cookies[0].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert not any(part.startswith(("max-age", "expires", "domain")) for part in attributes)
    assert cookies[0].startswith(cookie_name(PORT) + "=")


@pytest.mark.parametrize("key", ["", "x", "é", "\ud800"])
def test_a_wrong_key_opens_nothing(studio, key):
    studio.new_link()
    assert studio.doors.enter(key) is None
    assert studio.doors.session(key) is None


def test_secrets_are_compared_in_constant_time(monkeypatch):
    """Every comparison goes through `compare_digest`, and all links and sessions are compared."""
    compared = []

    def seen(one, other):
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("spinney_studio.security.compare_digest", seen)
    doors = Doors()
    links = [doors.new_link() for _ in range(3)]
    session = doors.enter(links[0])
    assert len(compared) == 3
    assert session.has_form_token("no") is False
    assert is_same("a", "a")
    compared.clear()
    doors.session("no")
    assert len(compared) == 1


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_another_name_of_the_host_is_refused(studio, host):
    """A name that somebody makes lead to this machine (DNS rebinding) gets nothing, with a session and without."""
    client = client_of(studio)
    assert client.get("/", headers={"host": host}).status_code == 403
    assert client.get("/static/studio.css", headers={"host": host}).status_code == 403
    assert client.get("/", headers={"host": f"localhost:{PORT}", "cookie": ""}).status_code in (200, 403)


@pytest.fixture
def counting(studio, monkeypatch):
    """A page that counts the forms that reach it."""
    pages, reached = Pages(), []

    @pages.post("/count")
    def count(call):
        reached.append(call)
        return call.redirect("/")

    @pages.get("/form")
    def form(call):
        return Response(call.session.form_token)

    monkeypatch.setattr(app, "PAGES", (*app.PAGES, pages))
    return reached


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": "null", "sec-fetch-site": ""},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": ""},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": ORIGIN, "sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_origin_does_nothing(studio, counting, headers):
    client = client_of(studio)
    token = client.get("/form").text
    assert client.post("/count", data={"form_token": token}, headers=headers).status_code == 403
    assert counting == []
    for ours in ({}, {"origin": "null"}):  # as browsers send it that are told to send no referrer
        answer = client.post("/count", data={"form_token": token}, headers=ours, follow_redirects=False)
        assert answer.status_code == 303
    assert len(counting) == 2


def test_a_form_without_the_token_of_its_session_does_nothing(studio, counting):
    client, other = client_of(studio), client_of(studio)
    token = other.get("/form").text
    for fields in ({}, {"form_token": ""}, {"form_token": token}):
        assert client.post("/count", data=fields).status_code == 403
    assert counting == []


def test_without_a_session_no_form_is_read(studio, counting):
    assert client_of(studio, enters=False).post("/count", data={}).status_code == 403
    assert counting == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_are_not_for_other_sites(studio, site):
    """A page of another site, or of another port, cannot even ask; a link may be followed from anywhere."""
    client = client_of(studio)
    assert client.get("/", headers={"sec-fetch-site": site}).status_code == 403
    assert client.get(studio.new_link(), headers={"sec-fetch-site": site}).status_code == 200


def test_every_answer_carries_the_policy(studio):
    """Pages, errors, refusals and static files alike."""
    inside, outside = client_of(studio), client_of(studio, enters=False)
    answers = [inside.get("/"), inside.get("/nowhere"), inside.get("/static/studio.js"), outside.get("/")]
    answers.append(inside.get("/", headers={"host": "evil.example"}))
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'"):
        assert part in POLICY
    for part in ("img-src 'self' data:", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in POLICY
    assert "unsafe" not in POLICY


def test_an_error_in_a_page_is_told_by_its_kind_alone(studio, monkeypatch, capfd):
    """Neither the page nor the terminal quotes what an unexpected error says."""

    def fail(self):
        raise RuntimeError("age 42")

    monkeypatch.setattr(Workspace, "drafts", fail)
    answer = client_of(studio).get("/")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text
    assert "age 42" not in answer.text
    assert "age 42" not in "".join(capfd.readouterr())


def test_the_server_listens_to_this_machine_alone():
    with listening(0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
        assert bound.getsockname()[1] != 0
        with pytest.raises(FileError, match="--port"):
            listening(bound.getsockname()[1])
    for host in ("0.0.0.0", "::", "192.168.0.1", "localhost"):
        with pytest.raises(ParameterError, match="this machine only"):
            listening(0, host)


def test_the_workspace_is_for_its_owner_alone(tmp_path):
    workspace = Workspace(Root(tmp_path))
    draft = workspace.new_draft(table={"path": "people.csv"})
    assert stat.S_IMODE(workspace.folder.stat().st_mode) == 0o700
    record = workspace.folder / "drafts" / f"{draft['key']}.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    workspace.change_draft(draft["key"], 1, table={"path": "other.csv"})
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_one_studio_works_in_a_workspace_at_a_time(tmp_path):
    first, second = Workspace(Root(tmp_path)), Workspace(Root(tmp_path))
    first.hold()
    with pytest.raises(FileError, match="another studio"):
        second.hold()
    first.give_back()
    second.hold()
    second.give_back()


def test_forms_are_bounded(studio):
    client = client_of(studio)
    answer = client.post("/", content=b"x" * (5 << 20), headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 413
