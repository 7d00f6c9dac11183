"""One studio with releases for all tests of pages that show them: its processes are started once."""

import time

import pytest

from support.shown_releases import put_releases
from support.studios import client_of, make_studio

GOLDEN = ("v3-moments-mixed", "v3-people-linked", "v3-points", "v3-grid-branded", "v3-forest-places")


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    put_releases(folder, golden=GOLDEN)
    made = make_studio(folder)
    put_releases(made.workspace.releases_folder)
    return made


@pytest.fixture(scope="session")
def client(studio):
    return client_of(studio)


@pytest.fixture(scope="session")
def get(client):
    """A page, waited for as a browser waits."""

    def found(path, **options):
        for _ in range(100):
            answer = client.get(path, **options)
            if answer.status_code != 202:
                return answer
            time.sleep(0.2)
        raise AssertionError(f"{path} was not ready in time")

    return found
