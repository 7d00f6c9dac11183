"""What is left to `make test-long` is listed by names that exist, and leaves something of every file to `make test`."""

from __future__ import annotations

import ast
from pathlib import Path

from support.long import KEPT, spread

ROOT = Path(__file__).parents[3]
# Files of which nothing runs in `make test`, with where their behaviour is looked at instead.
ALL_LONG: dict[str, str] = {}


def tests_of(path: str) -> set[str]:
    """The tests of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}


def test_every_listed_test_exists() -> None:
    """A test that got another name would run in full again, and nobody would know why it is slow."""
    assert len(KEPT) > 50
    missing = [name for name in KEPT if name.split("::")[-1] not in tests_of(name.split("::")[0])]
    assert not missing


def test_every_file_is_looked_at_in_the_short_suite() -> None:
    """Of each file at least one test has cases that `make test` runs."""
    for path in {name.split("::")[0] for name in KEPT}:
        left = {name for name in tests_of(path) if KEPT.get(f"{path}::{name}", 1)}
        assert left or ALL_LONG.get(path), f"nothing of {path} runs in `make test`"


def test_cases_are_spread_over_every_parameter() -> None:
    """Twelve of 66 cases have nearly all values of a parameter of eleven, and all of one of six."""
    names = [f"{first}-{second}" for first in range(11) for second in range(6)]
    kept = spread(names, 12)
    assert len(kept) == 12
    assert len({name.split("-")[0] for name in kept}) >= 8
    assert len({name.split("-")[1] for name in kept}) == 6
    assert spread(names, 0) == set()
    assert spread(names[:1], 3) == {"0-0"}
