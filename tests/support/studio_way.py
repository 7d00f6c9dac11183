"""Steps of the way through the studio, as a browser would take them: a draft, its schema, its budget."""

from __future__ import annotations

import re
import time

from spinney.demo_data import make_town
from support.studios import send, text_of

ROWS = "x,y\n" + "\n".join(f"{x},{y}" for x, y in make_town(2_000)) + "\n"


def revision(client, page):
    return re.search(r'name="revision" value="(\d+)"', client.get(page).text)[1]


def begin(client, path="people.csv", **more):
    """A draft for a table of the root; its address."""
    answer = send(client, "/tables/open", {"path": path, **more}, page="/tables")
    assert answer.status_code == 200, text_of(answer)
    return str(answer.url.path).removesuffix("/schema")


def columns(**stated):
    """The fields of a form of columns x and y."""
    fields = {}
    for number, name in enumerate(("x", "y")):
        entry = {"name": name, "type": "real", "bounds": "stated", "found": "listed", "low": "0", "high": "10"}
        fields |= {f"c{number}.{key}": value for key, value in (entry | stated).items()}
    return fields


def state(client, draft, fields=None, do="check"):
    page = f"{draft}/schema"
    return send(client, page, {"revision": revision(client, page), "do": do, **(fields or columns())})


def settled(client, page, *, seconds=60):
    """A page once nothing works behind it any more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = client.get(page)
        if "data-events" not in answer.text:
            return answer
        time.sleep(0.1)
    raise AssertionError("it takes too long")


def ask(client, draft, **fields):
    page = f"{draft}/budget"
    given = {"unit": "replace-one", "epsilon": "1", "ledger": "none", "new_limit": "2", **fields}
    return send(client, page, {"revision": revision(client, page), **given})


def checked(client, **more):
    draft = begin(client, **more)
    state(client, draft)
    assert "The table fits the schema" in text_of(settled(client, f"{draft}/schema"))
    return draft
