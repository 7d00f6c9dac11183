"""A studio for tests, without a server: requests go straight to the application."""

from __future__ import annotations

import json
import re
import warnings
from html import unescape
from pathlib import Path
from typing import Any

from spinney.studio.app import make_app
from spinney.studio.places import Root
from spinney.studio.running import Workers
from spinney.studio.studio import Studio
from spinney.studio.worker import run
from spinney.studio.workspace import Workspace

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
