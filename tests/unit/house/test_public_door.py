"""The public door: every name resolves, misspelt ones do not, and importing stays light."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numba.core.caching
import pytest

import spinney as sp
from spinney import errors
from spinney.compiled import compiled
from support.in_one_test import in_one_test


@in_one_test("name", sp.__all__)
def test_public_names_resolve(name):
    """Everything in `__all__` is there, and is documented."""
    value = getattr(sp, name)
    assert value is getattr(sp, name)
    assert isinstance(value, str) or value.__doc__


def test_all_is_sorted_and_complete():
    """`__all__`, `dir` and the table of homes agree."""
    assert len(set(sp.__all__)) == len(sp.__all__)
    assert set(sp.__all__) == {*sp._HOME, "__version__"}
    assert dir(sp) == sorted(sp.__all__)


def test_unknown_names():
    """A misspelt name is an AttributeError like anywhere else."""
    with pytest.raises(AttributeError, match="no attribute 'KdTree'"):
        _ = sp.KdTree


def fresh(code: str) -> str:
    """Output of a new Python."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_is_light():
    """`import spinney` loads none of the heavy libraries; schema and errors need none either."""
    heavy = ["numpy", "pyarrow", "numba", "narwhals", "flint", "pandas", "polars", "sklearn", "matplotlib", "click"]
    loaded = json.loads(
        fresh(
            "import sys, json, spinney as sp\n"
            "sp.Schema({'a': sp.Real(0, 1)}).to_toml(), sp.SpinneyError\n"
            f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
        )
    )
    assert loaded == []


def test_core_needs_no_data_frame_library():
    """Fitting and sampling an array imports neither pandas nor polars nor scikit-learn."""
    loaded = json.loads(
        fresh(
            "import sys, json, numpy as np, spinney as sp\n"
            "sp.KDTreeSynthesizer(1).fit(np.full((200, 1), 0.5), sp.Schema({'a': sp.Real(0, 1)})).sample(3)\n"
            "print(json.dumps([name for name in ('pandas', 'polars', 'sklearn') if name in sys.modules]))"
        )
    )
    assert loaded == []


def test_errors_are_a_small_family():
    """Every error is a SpinneyError and also the built-in that callers may already catch."""
    family = {
        errors.ParameterError: ValueError,
        errors.UnknownParameterError: TypeError,
        errors.SchemaError: ValueError,
        errors.InputError: ValueError,
        errors.BudgetError: ValueError,
        errors.NotFittedError: AttributeError,
        errors.FileError: OSError,
        errors.MissingExtraError: ImportError,
    }
    defined = {value for value in vars(errors).values() if getattr(value, "__module__", "") == "spinney.errors"}
    defined = {value for value in defined if isinstance(value, type)}
    cautions = {errors.PrivacyWarning, errors.SchemaWarning, errors.LedgerWarning, errors.ParameterWarning}
    assert defined - {errors.SpinneyError, errors.SpinneyWarning} == set(family) | cautions
    assert all(issubclass(caution, errors.SpinneyWarning) for caution in cautions)
    for error, builtin in family.items():
        assert issubclass(error, errors.SpinneyError)
        assert issubclass(error, builtin)


@pytest.mark.parametrize(("kind", "module"), [("pandas", "pandas"), ("polars", "polars")])
def test_a_missing_data_frame_library_is_named(square, monkeypatch, kind, module):
    """Asking for a table of a library that is not installed names it and the way out."""
    model = sp.GridSynthesizer(1).fit(*square)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(errors.MissingExtraError, match=f"pip install {kind}, .* extra '{kind}', or .*frame='pyarrow'"):
        model.sample(3, frame=kind)


def test_loops_compile_where_nothing_can_be_cached(monkeypatch):
    """Without a writable folder for numba's cache, loops are compiled anew instead of failing."""
    monkeypatch.setattr(numba.core.caching.FunctionCache, "_impl_class", NoPlace)

    @compiled
    def twice(x):
        return 2 * x

    assert twice(21) == 42


class NoPlace:
    """numba's cache when it finds no folder."""

    def __init__(self, *_):
        raise RuntimeError("cannot cache function: no locator available")


def test_many_categories_are_written_quickly():
    """A schema of 50,000 values becomes TOML in seconds, and reads back the same."""
    schema = sp.Schema({"code": sp.Category([f"value {i}" for i in range(50_000)])})
    start = time.perf_counter()
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert time.perf_counter() - start < 10
