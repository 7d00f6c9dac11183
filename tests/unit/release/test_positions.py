"""Numbers that a model made become typed columns: rounded where whole, moved into the bounds, in any kind of frame."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

import spinney as sp
from spinney.release.card import FRAME_KINDS
from spinney.release.frames import positions_of, to_frame
from spinney.synthesizers.base import _plain

SCHEMA = sp.Schema(
    {
        "real": sp.Real(-1, 1),
        "whole": sp.Integer(-5, 5),
        "truth": sp.Boolean(),
        "word": sp.Category(["a", "b", "c"]),
        "day": sp.Date("1969-12-30", "1970-01-04"),
    }
)
VALUES = np.array(
    [
        [-9.0, -0.25, 0.75, 9.0],
        [-5.4, -0.6, 2.5, 1e30],
        [-1.0, 0.4, 0.6, 2.0],
        [-1.0, 0.6, 1.4, 7.0],
        [-1e9, -0.7, 2.6, 1e9],
    ]
)
EXPECTED = {
    "real": [-1.0, -0.25, 0.75, 1.0],
    "whole": [-5, -1, 2, 5],
    "truth": [False, False, True, True],
    "word": ["a", "b", "b", "c"],
    "day": [date(1969, 12, 30), date(1969, 12, 31), date(1970, 1, 4), date(1970, 1, 4)],
}


def test_numbers_become_typed_values():
    """Nearest whole number, nearer bound, place in the list, days since 1970; what came in stays as it was."""
    before = VALUES.copy()
    assert to_frame(positions_of(VALUES, SCHEMA), SCHEMA, "pyarrow").to_pydict() == EXPECTED
    assert (before == VALUES).all()


@pytest.mark.parametrize("kind", [kind for kind in FRAME_KINDS if kind != "pyarrow"])
def test_other_kinds_of_frames_agree(kind):
    """The same numbers give the same values in any kind of frame that can hold them."""
    numeric = sp.Schema({name: SCHEMA[name] for name in ("real", "whole", "truth")})
    frame = to_frame(positions_of(VALUES[:3], numeric), numeric, kind)
    for index, name in enumerate(numeric):
        values = frame[:, index].tolist() if kind == "numpy" else frame[name].to_list()
        assert values == EXPECTED[name]


@pytest.mark.parametrize("bound", [2**53 + 1, 2**60, 2**61])
def test_bounds_beyond_what_floats_can_tell(bound):
    """However large the bounds, what comes out lies between them."""
    schema = sp.Schema({"v": sp.Integer(-bound, bound)})
    ends = np.array([[float(bound), -float(bound), np.inf, -np.inf, 0.3]])
    values = to_frame(positions_of(ends, schema), schema, "pyarrow")["v"].to_pylist()
    assert all(-bound <= value <= bound for value in values)
    assert values[2] >= bound - 2
    assert values[3] == -bound


def test_nulls_stay_null():
    """NaN is null in columns that may hold it."""
    schema = sp.Schema({"r": sp.Real(0, 1, nullable=True), "i": sp.Integer(0, 9, nullable=True)})
    found = to_frame(positions_of(np.array([[np.nan, 3.0], [4.2, np.nan]]), schema), schema, "pyarrow").to_pydict()
    assert found == {"r": [None, 1.0], "i": [4, None]}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        ("0.1", "0.1"),
        (np.int64(5), "5"),
        ({"a": {"b": np.float32(0.5)}}, {"a": {"b": "0.5"}}),
        (np.zeros((3, 2)), "array of shape (3, 2)"),
        ([[1.0, 2.0]], "array of shape (1, 2)"),
    ],
)
def test_parameters_on_a_card(value, plain):
    """Parameters become JSON-ready; of arrays and lists the card holds the shape alone."""
    assert _plain(value) == plain
