"""A studio with one table, and a browser in it."""

from __future__ import annotations

import pytest

from support.studio_way import ROWS
from support.studios import client_of, make_studio


@pytest.fixture
def studio(tmp_path):
    (tmp_path / "people.csv").write_text(ROWS)
    return make_studio(tmp_path)


@pytest.fixture
def client(studio):
    return client_of(studio)
