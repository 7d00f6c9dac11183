"""Many small cases in one test: what `pytest.mark.parametrize` does, without a test for each case.

A list of a hundred bad values is one statement about one function. `in_one_test` runs all of them, whatever fails, and
names those that failed; `make test` has a third fewer tests than it would have otherwise. Cases share the fixtures of
their test, but for `tmp_path`, which is a folder of each case.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def in_one_test(names: str | Sequence[str], cases: Iterable[Any], *, ids: Any = None) -> Callable[[Test], Test]:
    """A decorator with the arguments of `pytest.mark.parametrize`, which runs all cases in one test."""
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [_values(case, len(wanted)) for case in cases]
    assert listed, f"no cases of {names}"
    labels = list(ids) if ids is not None and not callable(ids) else [_label(case, ids) for case in listed]

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for number, (label, case) in enumerate(zip(labels, listed, strict=True)):
                try:
                    test(**_apart(fixtures, number), **dict(zip(wanted, case, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in the case {label}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(listed)} cases failed", failed)

        del run.__wrapped__  # type: ignore[attr-defined]  # pytest would look through it for the names of fixtures
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _values(case: Any, n: int) -> tuple[Any, ...]:
    """The values of a case, which may be one of `pytest.param`."""
    if hasattr(case, "values") and hasattr(case, "marks"):
        assert not case.marks, "a case with a mark is a test of its own"
        return tuple(case.values)
    return (case,) if n == 1 else tuple(case)


def _label(case: tuple[Any, ...], ids: Callable[[Any], Any] | None) -> str:
    return repr(case) if ids is None else "-".join(str(ids(value)) for value in case)


def _apart(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    if "tmp_path" not in fixtures:
        return fixtures
    folder = fixtures["tmp_path"] / str(number)
    folder.mkdir()
    return fixtures | {"tmp_path": folder}
