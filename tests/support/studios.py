"""A studio for tests, without a server: requests go straight to the application."""

from __future__ import annotations

import json
import re
import warnings
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from spinney.privacy.ledger import Ledger
from spinney_studio.jobs import Workers, run
from spinney_studio.server import Studio, make_app
from spinney_studio.workspace import Root, Workspace

with warnings.catch_warnings():  # newer versions of starlette would rather have another client library
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"


class WorkersAtOnce(Workers):
    """Workers that do their work while they are started, in this process, where everything is compiled already."""

    def start(self, name: str, spec: dict[str, Any]) -> None:
        run(json.loads(json.dumps(spec)))


def make_studio(folder: Path, *, workers: Workers | None = None, **options: Any) -> Studio:
    """A studio whose root is a folder; its workers are done at once, unless others are given."""
    studio = Studio(Workspace(Root(folder)), PORT, **options)
    studio.jobs.workers = workers or WorkersAtOnce()
    return studio


def client_of(studio: Studio, *, enters: bool = True) -> TestClient:
    """A browser, as it were, that has come in through a link; its requests come from the studio's own pages."""
    client = TestClient(make_app(studio), base_url=ORIGIN, headers={"origin": ORIGIN, "sec-fetch-site": "same-origin"})
    if enters:
        assert client.get(studio.new_link()).status_code == 200
    return client


SIX_COLUMNS = "".join(f'[columns.{name}]\ntype = "integer"\nlow = 0\nhigh = 99\n' for name in "abcdef")


def six_columns(folder: Path) -> None:
    """A table that takes a few seconds to be fitted, and a ledger that can pay for it."""
    rows = "\n".join(",".join(str(n * k % 97) for k in (1, 2, 3, 5, 7, 11)) for n in range(30_000))
    (folder / "big.csv").write_text(f"a,b,c,d,e,f\n{rows}\n")
    Ledger.create(folder / "big.ledger", limit=2, delta="1e-3")


def spent_draft(workspace: Workspace, **more: Any) -> str:
    """The key of a job on that table that is on record, and that nobody works on yet."""
    table = {"at": "root", "path": "big.csv", "table": "", "csv": {}, "name": "big"}
    folder = str(workspace.root.folder)
    draft = workspace.new_draft(name="big", table=table, schema=SIX_COLUMNS, folder=folder, fields=[])
    place = str(workspace.root.folder / "big.ledger")
    ledger = {"place": place, "address": place, "population": "default", "table": "", "purpose": "", "request": None}
    job = {"state": "queued", "name": "big", "release": "big", "table": table, "schema": SIX_COLUMNS, "epsilon": "1"}
    job |= {"folder": folder, "delta": "", "options": {"quality": "high"}, "ledger": ledger}
    record, _is_new = workspace.spend_draft(draft["key"], 1, job | more)
    return str(record["key"])


def form_token(client: TestClient, page: str = "/") -> str:
    """The token that the forms of a page carry."""
    found = re.search(r'name="form_token" value="([^"]+)"', client.get(page).text)
    assert found is not None, f"{page} has no form"
    return found[1]


def send(client: TestClient, path: str, fields: dict[str, Any], *, page: str | None = None) -> Any:
    """Send a form of a page, with its token; redirects are followed."""
    return client.post(path, data={"form_token": form_token(client, page or path), **fields})


def text_of(answer: Any) -> str:
    """What a page says, without its markup."""
    body = re.sub(r"(?s)<head>.*?</head>", "", answer.text)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


def fields_of(answer: Any, action: str) -> dict[str, str]:
    """What a browser would send of the form of a page that leads to an address, as it was loaded."""
    reader = _Form(action)
    reader.feed(answer.text)
    assert reader.fields, f"there is no form for {action}"
    return reader.fields


class _Form(HTMLParser):
    def __init__(self, action: str) -> None:
        super().__init__()
        self._action, self._is_in, self._select, self._area = action, False, "", ""
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_in = given.get("action") == self._action
        if not self._is_in:
            return
        name, kind = given.get("name", ""), given.get("type", "")
        if tag == "input" and name and (kind not in ("checkbox", "radio") or "checked" in given):
            self.fields[name] = given.get("value", "")
        if tag == "select":
            self._select = name
        if tag == "option" and ("selected" in given or self._select not in self.fields):
            self.fields[self._select] = given["value"]
        if tag == "textarea":
            self._area, self.fields[name] = name, ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")  # which browsers leave out
            self._area = ""
