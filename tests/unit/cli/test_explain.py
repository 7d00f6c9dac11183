"""`spinney explain`: a page, JSON or a picture of a forest, and a clear word for all else."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import files_in, spinney, write_people
from support.small_forests import fitted


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forest") / "forest.spinney"
    fitted(target="label").save(path)
    return path


def test_a_page_to_read(forest: Path) -> None:
    run = spinney("explain", forest)
    assert run.status == 0
    assert run.out == f"{fitted(target='label').explain()}\n"
    assert "kind and size given label" in run.out


def test_programs_get_json(forest: Path) -> None:
    assert spinney("explain", forest, "--json").json == fitted(target="label").explain().to_dict()


def test_a_picture_besides(forest: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph.svg"
    run = spinney("explain", forest, "--picture", out)
    assert run.status == 0
    assert run.out.endswith(f"wrote {out}\n")
    assert "<svg" in out.read_text()
    again = spinney("explain", forest, "--picture", out)
    assert again.status == 2
    assert "--force" in again.err
    described = spinney("explain", forest, "--picture", out, "--force", "--json").json
    assert described["picture"] == str(out)


def test_a_wrong_picture_name_is_refused(forest: Path, tmp_path: Path) -> None:
    run = spinney("explain", forest, "--picture", tmp_path / "graph.jpeg")
    assert run.status == 2
    assert ".svg or .png" in run.err
    assert run.out == ""
    assert not files_in(tmp_path)


def test_other_releases_get_a_clear_error(tmp_path: Path) -> None:
    table, schema = write_people(tmp_path)
    release = tmp_path / "people.spinney"
    assert spinney("fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--out", release).status == 0
    before = files_in(tmp_path)
    run = spinney("explain", release, "--picture", tmp_path / "graph.svg")
    assert run.status == 2
    assert "not a forest" in run.err
    assert "card" in run.err
    assert files_in(tmp_path) == before


def test_what_is_no_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.spinney"
    path.write_text("nothing")
    assert spinney("explain", path).status == 1
    assert spinney("explain", tmp_path / "missing.spinney").status == 2
