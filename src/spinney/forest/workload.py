"""Stated tables: those that a call wants measured as they are, without a private choice.

Their columns are told apart as finely as the schema does: every category and every value of a short list has a state of
its own, rare or not, and numbers have one for each leaf of their tree. All of them are counted with noise of their own
before anything is chosen. A table's cells are joined into boxes only where the columns by themselves let far fewer rows
be expected than the noise has. Whether the tables fit into one model is known before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.state_tables import StateTables
from spinney.errors import ParameterError
from spinney.forest.cliques import measure, outer
from spinney.forest.possible import Possible
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.estimate import Measurement
from spinney.graph.junction import JunctionTree
from spinney.schema.column_axis import ColumnAxis
from spinney.schema.lattice import needs_tree

Floats = NDArray[np.float64]

# A stated column has a state for each value of a list of up to so many, or up to so many leaves of a number.
MOST_VALUES = 256
MOST_LEAVES = 128
# The model's tree has no more cells than this for all stated tables and rules.
_MOST_CELLS = 1_000_000
# Boxes of stated tables are expected to hold at least this many standard deviations of the noise.
_BOX_DEVIATIONS = 1.0


def n_stated_states(name: str, axis: ColumnAxis) -> int:
    """How many states a stated column has at most; a ParameterError where it has too many values."""
    n_possible = axis.axis.n_possible
    if needs_tree(axis.axis):
        return min(n_possible, MOST_LEAVES + axis.axis.nullable)
    if n_possible > MOST_VALUES:
        raise ParameterError(
            f"workload: column {name!r} has {n_possible:,} values, and a stated table tells up to {MOST_VALUES} of a "
            "column apart; take the column out of the workload, or list fewer values and an `other`"
        )
    return n_possible


def check_cells(names: Sequence[str], sizes: Sequence[int], cliques: Sequence[Clique]) -> int:
    """How many cells the model's tree has with stated tables; a ParameterError where these are too many."""
    tree = JunctionTree.covering(sizes, cliques)
    if tree.n_cells <= _MOST_CELLS:
        return tree.n_cells
    largest = max(tree.cliques, key=lambda clique: math.prod(float(sizes[column]) for column in clique))
    n_cells = math.prod(sizes[column] for column in largest)
    *first, last = [repr(names[column]) for column in largest]
    listed = f"{', '.join(first)} and {last}" if first else last
    raise ParameterError(
        f"workload: the stated tables need a model of {tree.n_cells:,} cells, and it may have {_MOST_CELLS:,}; it "
        f"joins {listed}, {n_cells:,} cells; state fewer columns together, or columns with fewer values"
    )


def measure_stated(
    rows: StateTables,
    stated: Sequence[Clique],
    shares: Sequence[Floats],
    prepaid: PrepaidMechanisms,
    possible: Possible,
    *,
    total: float,
) -> list[Measurement]:
    """Noisy counts of all stated tables; `shares` are the released shares of every column's states."""
    least = _BOX_DEVIATIONS * prepaid.plan.noise_std("workload") if stated else 0.0
    return [
        measure(
            rows,
            clique,
            possible.shared_out(clique, total * outer([shares[column] for column in clique])),
            prepaid,
            stage="workload",
            least=least,
            possible=possible.table(clique),
        )
        for clique in stated
    ]
