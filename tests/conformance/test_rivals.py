"""Rival systems take every kind of frame as our synthesizers do: the same numbers in, the same kind of table out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney_paper.baselines import DPMERF, BalogAlgorithm1, BalogAlgorithm2

NAMES = ["real", "integer"]
RIVALS = {
    "Balog et al. 1": (BalogAlgorithm1(50, n_points=20), NAMES),
    "Balog et al. 2": (BalogAlgorithm2(50, n_points=5, n_features=40, n_steps=5, penalty="0.001"), NAMES),
    "DP-MERF": (DPMERF(50, target="truth", n_features=20, n_steps=2), [*NAMES, "truth"]),
}
each_rival = pytest.mark.parametrize(("model", "names"), RIVALS.values(), ids=RIVALS)


def part(frame, names):
    """Some columns of a frame of any kind."""
    return frame.select(names) if isinstance(frame, pa.Table) else frame[names]


def sampled(model, frame, schema, **options):
    """Rows of a fit whose noise is seeded."""
    return model.fit(frame, schema, entropy=sp.UnsafeSeededEntropy(5)).sample(60, seed=1, **options)


@each_rival
def test_every_kind_of_frame_is_read_alike_and_comes_back(memory_kind, model, names, schema, arrow_table):
    """One table in any kind of frame, with the same noise, gives the same rows in that kind."""
    columns = sp.Schema({name: schema[name] for name in names})
    rows = sampled(model, part(memory_kind.make(), names), columns)
    assert isinstance(rows, memory_kind.out)
    expected = sampled(model, arrow_table.select(names), columns)
    again = model.sample(60, seed=1, frame="pyarrow")
    assert again.equals(expected)
    for name in names:
        values = rows[name].to_pylist() if isinstance(rows, pa.Table) else list(rows[name])
        assert values == expected[name].to_pylist()
    assert pa.types.is_int64(expected["integer"].type)


@each_rival
def test_files_and_lazy_tables_are_refused(outside_kind, model, names, schema, arrow_table):
    """Rivals add up rows in memory; the message says what they take."""
    columns = sp.Schema({name: schema[name] for name in names})
    with pytest.raises(sp.SpinneyError, match="is not a table; pass a pandas, polars or pyarrow table"):
        model.fit(outside_kind.hold(arrow_table.select(names)), columns)


@each_rival
def test_arrays(model, names, schema, arrow_table):
    """Numbers in an array, truth as 0 and 1 among them, are read as in a frame, and an array comes back."""
    columns = sp.Schema({name: schema[name] for name in names})
    table = arrow_table.select(names)
    array = np.column_stack([np.array(table[name].to_pylist(), dtype=np.float64) for name in names])
    rows = sampled(model, array, columns)
    assert isinstance(rows, np.ndarray)
    expected = sampled(model, table, columns)
    for index, name in enumerate(names):
        assert rows[:, index].tolist() == expected[name].to_pylist()


@each_rival
def test_columns_outside_the_schemas_order(model, names, schema, arrow_table):
    """Columns are found by name, not by place."""
    columns = sp.Schema({name: schema[name] for name in names})
    table = arrow_table.select(names)
    assert sampled(model, table.select(names[::-1]), columns).equals(sampled(model, table, columns))
