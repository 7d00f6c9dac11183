"""What is left to `make test-long` is listed by names that exist, and leaves something of every file to `make test`."""

from __future__ import annotations

import re
from pathlib import Path

from support.long import KEPT, is_beside, spread

TESTS = Path(__file__).parents[2]


def names_in(file: str) -> set[str]:
    """The tests of a file."""
    return set(re.findall(r"^def (test_\w+)\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE))


def test_every_listed_test_exists() -> None:
    """A test that got another name would run in full again, and nobody would know why it is slow."""
    assert len(KEPT) > 30
    assert not {file: missing for file, listed in KEPT.items() if (missing := {*listed} - names_in(file))}


def test_every_file_is_looked_at_in_the_short_suite() -> None:
    """Of each file at least one test has cases that `make test` runs."""
    for file, listed in KEPT.items():
        assert any(listed.get(name, 1) for name in names_in(file)), f"nothing of {file} runs in `make test`"


def test_no_broken_mechanism_is_left_to_the_long_suite() -> None:
    """What catches a broken mechanism runs for every change."""
    zoos = [path for path in TESTS.rglob("test_*.py") if "sabotage" in path.read_text(encoding="utf-8")]
    listed = {name for path in zoos for name in KEPT.get(path.relative_to(TESTS).as_posix(), ())}
    assert not {name for name in listed if "sabotage" in name}
    caught = {path.relative_to(TESTS).as_posix() for path in zoos if "def test_sabotage_is_caught(" in path.read_text()}
    assert {"exact/test_zoo.py", "exact/test_forest_laws.py", "unit/auditing/test_games.py"} <= caught
    assert not {file for file in caught if is_beside(file, "test_sabotage_is_caught")}
    assert is_beside("unit/paper/test_merf.py", "test_draws")


def test_cases_are_spread_over_every_parameter() -> None:
    """Twelve of 66 cases have nearly all values of a parameter of eleven, and all of one of six."""
    names = [f"{first}-{second}" for first in range(11) for second in range(6)]
    kept = spread(names, 12)
    assert len(kept) == 12
    assert len({name.split("-")[0] for name in kept}) >= 8
    assert len({name.split("-")[1] for name in kept}) == 6
    assert spread(names, 0) == set()
    assert spread(names[:1], 3) == {"0-0"}
