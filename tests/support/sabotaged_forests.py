"""A zoo of sabotaged forests, and the checks that must catch them, in the manner of `zoo`.

A check runs the real code and gives 1 where the promise is kept and 0 where it is not; sabotage is a context in which
one mistake has been made to that code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any
from unittest import mock

import numpy as np

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.counting.states import StateRows
from spinney.errors import BudgetError
from spinney.forest import columns
from spinney.forest.cliques import measure
from spinney.forest.columns import NoisyColumn, release_column
from spinney.forest.design import choose_tree
from spinney.forest.plan import ForestPlan, Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.axes import ColumnAxis, column_axis
from spinney.grid.ruler import Ruler
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge
from spinney.tables.engines import memory
from spinney.tree.ranges import Ranges, grow_ranges
from support.exhaustive_branches import Law, branching, law_of
from support.slow_forests import Row, neighbouring_rows, rows_of

Check = Callable[[], float]
Sabotage = Callable[[], AbstractContextManager[Any]]

SIZES = (2, 2, 2)
N_ROWS = 3
# Neighbours differ in a row here; persons with all their rows have laws of their own (`person_laws.py`).
UNITS_OF_ROWS = (Unit.REPLACE_ONE, Unit.ADD_REMOVE)


def exact_plan(
    *,
    n_trees: int = 0,
    n_one_way: int = 0,
    n_spikes: int = 0,
    n_grain: int = 0,
    n_choices: int = 0,
    n_cliques: int = 0,
    levels: int = 16,
    epsilon: Fraction = Fraction(10**6),
    unit: Unit = Unit.REPLACE_ONE,
) -> ForestPlan:
    """A pure plan in which every stage has a fifth of epsilon."""
    numbers = {
        "trees": n_trees,
        "one-way": n_one_way,
        "spikes": n_spikes,
        "grain": n_grain,
        "selection": n_choices,
        "cliques": n_cliques,
    }
    shares = {stage: Fraction(1, 5) for stage, times in numbers.items() if times}
    shape = Shape(numbers, shares, {"trees": levels})
    return forest_plan(shape, epsilon=epsilon, delta=Fraction(0), unit=unit)


# ------------------------------------------------------------------------------------------------ checks


def _line() -> tuple[CellCounts, Ruler]:
    """A table of three rows at 0, and the ruler of its column."""
    axis = column_axis("v", sp.Integer(0, 63))
    assert axis.ruler is not None
    return CellCounts.from_codes(axis.lattice, np.zeros((3, 1), dtype=np.uint64)), axis.ruler


def nothing_twice() -> float:
    """What one table, one tree and one choice were paid for can be had once."""
    counts, ruler = _line()
    plan = exact_plan(n_trees=1, n_one_way=1, n_spikes=1, n_choices=1)
    prepaid = PrepaidMechanisms(plan, Ledger(), UnsafeSeededEntropy(1))
    takes: list[Callable[[], Any]] = [
        lambda: prepaid.noisy_counts(np.array([3]), "one-way"),
        lambda: prepaid.noisy_counts(np.array([3]), "spikes"),
        lambda: prepaid.ranges(counts, ruler, cutoff=1),
        lambda: prepaid.choice(np.array([3, 4]), sensitivity=2),
    ]
    for take in takes:
        take()
        try:
            take()
        except BudgetError:
            continue
        return 0.0
    return 1.0


def no_deeper_than_paid_for() -> float:
    """A tree of more levels than the plan has is refused before it is grown."""
    counts, ruler = _line()
    prepaid = PrepaidMechanisms(
        exact_plan(n_trees=1, n_one_way=1, levels=ruler.max_levels - 1), Ledger(), UnsafeSeededEntropy(1)
    )
    try:
        prepaid.ranges(counts, ruler, cutoff=1)
    except BudgetError:
        return 1.0
    return 0.0


def choice_laws(unit: Unit, epsilon: Fraction, sizes: tuple[int, ...] = SIZES) -> dict[tuple[Row, ...], Law]:
    """Chance of every tree of pairs, for all tables of three rows; add-remove: two and three.

    Each of the two choices has `epsilon`. Shares are lopsided, as released ones would be.
    """
    plan = exact_plan(n_one_way=1, n_choices=2, epsilon=10 * epsilon, unit=unit)
    assert plan.choices["selection"].each == epsilon
    shares = [np.array([[0.5, 0.5]]), np.array([[0.3, 0.7]]), np.array([[0.6, 0.4]]), np.array([3.0])]
    cells = list(product(*map(range, sizes)))
    numbers = (N_ROWS,) if unit is Unit.REPLACE_ONE else (N_ROWS - 1, N_ROWS)
    laws = {}
    for rows in (rows for n in numbers for rows in combinations_with_replacement(cells, n)):
        states = rows_of(rows, sizes)

        def run(pick: Any, states: StateRows = states) -> tuple[Any, ...]:
            prepaid = PrepaidMechanisms(plan, Ledger(unit=unit), UnsafeSeededEntropy(0))
            with branching(pick):
                return tuple(choose_tree(states, range(len(sizes)), shares, prepaid))

        laws[rows] = law_of(run)
    return laws


def neighbouring_laws(laws: dict[tuple[Row, ...], Law], unit: Unit) -> Iterator[tuple[Law, Law]]:
    """The laws of every table and each of its neighbours, where that was computed."""
    for rows, law in laws.items():
        for other in neighbouring_rows(rows, SIZES, unit):
            neighbour = laws.get(tuple(sorted(other)))
            if neighbour is not None and neighbour is not law:
                yield law, neighbour


def first_choice(law: Law) -> Law:
    """The law of the first pair alone."""
    first: Law = {}
    for pairs, chance in law.items():
        first[pairs[0]] = first.get(pairs[0], 0.0) + chance  # type: ignore[index]
    return first


def ratio_range(law: Law, other: Law) -> float:
    """How far apart the log-ratios of two laws are: the range that a choice is accounted for by."""
    ratios = [math.log(law[outcome] / other[outcome]) for outcome in law]
    return max(ratios) - min(ratios)


def choices_of_bounded_range() -> float:
    """Between neighbours the log-ratios of a choice span no more than it was charged for, in either unit."""
    epsilon = Fraction(4)
    for unit in UNITS_OF_ROWS:
        laws = {rows: first_choice(law) for rows, law in choice_laws(unit, epsilon).items()}
        if max(ratio_range(a, b) for a, b in neighbouring_laws(laws, unit)) > epsilon + 1e-9:
            return 0.0
    return 1.0


def scores_within_sensitivity() -> float:
    """Scores by which a choice is asked for change by the sensitivity stated with it, at most, over all neighbours."""
    seen: list[tuple[Any, int]] = []

    def note(_: PrepaidMechanisms, true_scores: Any, *, sensitivity: int) -> int:
        seen.append((np.array(true_scores), sensitivity))
        return 0

    shares = [np.array([[0.5, 0.5]]), np.array([[0.3, 0.7]]), np.array([[0.6, 0.4]]), np.array([3.0])]
    tables = [[(0, 0, 0)] * 3, [(0, 1, 0), (1, 0, 1), (1, 1, 1)], [(0, 0, 1), (0, 0, 1), (1, 1, 0)]]
    with mock.patch.object(PrepaidMechanisms, "choice", note):
        for unit, rows in product(UNITS_OF_ROWS, tables):
            plan = exact_plan(n_one_way=1, n_choices=2, unit=unit)
            seen.clear()
            for table in [rows, *neighbouring_rows(rows, SIZES, unit)]:
                choose_tree(
                    rows_of(table, SIZES), range(3), shares, PrepaidMechanisms(plan, Ledger(unit=unit), _noise())
                )
            (here, sensitivity), *others = seen[::2]  # the first of the two choices has all the scores
            if any(np.abs(here - there).max() > sensitivity for there, _ in others):
                return 0.0
    return 1.0


def _noise() -> UnsafeSeededEntropy:
    return UnsafeSeededEntropy(2)


@contextmanager
def _handed() -> Iterator[dict[str, list[Any]]]:
    """The counts that prepaid mechanisms are handed for each stage, noise or none."""
    seen: dict[str, list[Any]] = defaultdict(list)

    def note(_: PrepaidMechanisms, true_counts: Any, stage: str) -> Any:
        seen[stage].append(np.array(true_counts))
        return true_counts

    with mock.patch.object(PrepaidMechanisms, "noisy_counts", note):
        yield seen


def _is_partition(counts: list[Any], n_rows: int, unit: Unit) -> bool:
    """Counts of a table and its neighbours: all rows counted once, so that one row changes two counts or one by 1."""
    return counts[0].sum() == n_rows and share_no_row(counts, unit)


def share_no_row(counts: list[Any], unit: Unit) -> bool:
    """Counts of a table and its neighbours: one row changes two counts or one by 1, or none."""
    here, *others = counts
    return all(
        len(there) == len(here)
        and np.abs(here - there).sum() <= unit.factor
        and np.square(here - there).sum() <= unit.factor
        for there in others
    )


# Trees that are cut all the way, and trees that are not cut at all, whatever the table.
ALWAYS, NEVER = -100, 100


def released_for_neighbours(axis: ColumnAxis, unit: Unit, cutoff: int) -> tuple[dict[str, list[Any]], int]:
    """The counts that a column of three rows, and then each of its neighbours, is released from."""
    one = axis.axis
    cells = [*range(one.first, one.last + 1), *([one.null_cell] if one.nullable else [])]
    rows = [(place,) for place in (0, 0, len(cells) - 1)]
    plan = exact_plan(n_trees=1, n_one_way=1, n_spikes=1, n_grain=1, unit=unit)
    with _handed() as seen:
        for table in [rows, *neighbouring_rows(rows, (len(cells),), unit)]:
            codes = np.array([cells[place] for (place,) in table], dtype=np.uint64) << np.uint64(64 - one.bits)
            counts = CellCounts.from_codes(axis.lattice, codes.reshape(-1, 1))
            prepaid = PrepaidMechanisms(plan, Ledger(unit=unit), _noise())
            release_column(counts, prepaid, ruler=axis.ruler, cutoff=cutoff, grain=axis.grain)
    return seen, len(rows)


def small_axes() -> list[ColumnAxis]:
    """Numbers that are cut by a tree, though they are few, and a category."""
    small = (sp.Integer(0, 7), sp.Integer(0, 4, nullable=True), sp.Category([*"abc"], nullable=True))
    with mock.patch("spinney.grid.lattice._FEW_CELLS", 2):
        return [column_axis.__wrapped__("v", column) for column in small]


def one_way_counts_are_of_a_partition() -> float:
    """Leaves of a tree, and categories: a row is in one of them."""
    for axis, unit, cutoff in product(small_axes(), UNITS_OF_ROWS, (ALWAYS, NEVER)):
        seen, n_rows = released_for_neighbours(axis, unit, cutoff)
        if not _is_partition(seen["one-way"], n_rows, unit):
            return 0.0
    return 1.0


def clique_counts_are_of_a_partition() -> float:
    """Boxes of a clique: a row is in one of them."""
    expected = np.array([[3.0, 1.0], [0.5, 0.2]])
    for unit, least in product(UNITS_OF_ROWS, (0.0, 1.0, 50.0)):
        rows = [(0, 0, 0), (1, 1, 0), (0, 1, 1)]
        plan = exact_plan(n_one_way=1, n_cliques=1, unit=unit)
        with _handed() as seen:
            for table in [rows, *neighbouring_rows(rows, SIZES, unit)]:
                prepaid = PrepaidMechanisms(plan, Ledger(unit=unit), _noise())
                measure(rows_of(table, SIZES), (0, 1), expected, prepaid, stage="cliques", least=least)
        if not _is_partition(seen["cliques"], len(rows), unit):
            return 0.0
    return 1.0


def everything_is_paid_for_first() -> float:
    """Whenever a fit counts cells or states of rows, a charge for them is on the ledger; classes have their own."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(300), rng.integers(0, 2, 300), rng.integers(0, 3, 300)])
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Boolean(), "z": sp.Integer(0, 2)})
    ledger = sp.Ledger(limit=1, delta="1e-5")
    spent: list[Fraction] = []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*arguments: Any) -> Any:
            spent.append(ledger.spent)
            return function(*arguments)

        return spy

    with (
        mock.patch.object(memory, "count_cells", watched(memory.count_cells)),
        mock.patch.object(memory, "state_rows", watched(memory.state_rows)),
    ):
        sp.ForestSynthesizer(1, target="y").fit(table, schema, ledger=ledger, entropy=UnsafeSeededEntropy(1))
    is_paid = spent == [Fraction(1, 25)] + [Fraction(1)] * (len(spent) - 1)
    return float(is_paid and len(spent) >= 3 and ledger.spent == 1)


# ------------------------------------------------------------------------------------------------ sabotage


def hands_out_twice() -> AbstractContextManager[Any]:
    """Prepaid mechanisms that looks whether there is something left, and takes nothing out."""
    return mock.patch.object(PrepaidMechanisms, "_take", lambda self, stage: self._left[stage])


def levels_not_counted() -> AbstractContextManager[Any]:
    """Prepaid mechanisms that grows trees of any depth for the price of shallow ones."""
    ranges = PrepaidMechanisms.ranges

    def any_depth(self: PrepaidMechanisms, counts: CellCounts, ruler: Ruler, *, cutoff: int) -> Any:
        deeper = replace(self.plan.trees["trees"], levels=64, times=1)
        self.plan = replace(self.plan, noise={**self.plan.noise, "trees": deeper})
        return ranges(self, counts, ruler, cutoff=cutoff)

    return mock.patch.object(PrepaidMechanisms, "ranges", any_depth)


def half_the_sensitivity() -> AbstractContextManager[Any]:
    """GAP_STEPS under replace-one too, where another row in the place of one changes two cells."""
    choice = PrepaidMechanisms.choice

    def keener(self: PrepaidMechanisms, true_scores: Any, *, sensitivity: int) -> int:
        return choice(self, true_scores, sensitivity=sensitivity // self.plan.unit.factor)

    return mock.patch.object(PrepaidMechanisms, "choice", keener)


def half_the_sensitivity_told() -> AbstractContextManager[Any]:
    """The same mistake where scores are made: the mechanisms are told GAP_STEPS."""
    return mock.patch.object(Unit, "factor", 1)


def expected_from_true_counts() -> AbstractContextManager[Any]:
    """Predictions by the private table's own shares: they move with the row that the score is to hide."""
    true_gaps = StateRows.true_gaps

    def peeking(self: StateRows, pairs: Any, shares: Any, by: int | None = None) -> Any:
        n_rows = max(self.n_rows, 1)
        true_shares = [(self.true_table((column,)) / n_rows)[None] for column in range(len(self.sizes))]
        return true_gaps(self, pairs, [*true_shares, np.array([float(self.n_rows)])], by)

    return mock.patch.object(StateRows, "true_gaps", peeking)


def overlapping_leaves() -> AbstractContextManager[Any]:
    """Every leaf counts the rows of the next one too, as smoothed histograms do."""
    listed = columns._all_cells

    def smooth(true_counts: Any) -> Any:
        return true_counts + np.append(true_counts[1:], 0)

    def smooth_cells(*given: Any) -> tuple[Any, Any, Any]:
        first, stop, true_counts = listed(*given)
        return first, stop, smooth(true_counts)

    return _both(
        other_ranges(lambda found: replace(found, true_counts=smooth(found.true_counts))),
        mock.patch.object(columns, "_all_cells", smooth_cells),
    )


def other_ranges(change: Callable[[Ranges], Ranges]) -> AbstractContextManager[Any]:
    """Trees whose ranges, or their counts, are changed after they were grown."""
    return mock.patch(
        "spinney.forest.prepaid.grow_ranges", lambda *given, **roots: change(grow_ranges(*given, **roots))
    )


def rows_left_out() -> AbstractContextManager[Any]:
    """Nulls are counted nowhere: under replace-one that is a table of the others, whose number it then gives away."""
    listed = columns._all_cells

    def without(counts: CellCounts, axis: Any) -> tuple[Any, Any, Any]:
        first, stop, true_counts = listed(counts, axis)
        return first, stop, np.where(first == axis.null_cell, 0, true_counts)

    return mock.patch.object(columns, "_all_cells", without)


@contextmanager
def _both(*contexts: AbstractContextManager[Any]) -> Iterator[None]:
    with contexts[0], contexts[1]:
        yield


def boxes_that_overlap() -> AbstractContextManager[Any]:
    """A clique's table is counted by rows and by columns at once: every row twice."""
    true_table = StateRows.true_table

    def twice(self: StateRows, clique: Any) -> Any:
        table = true_table(self, clique)
        return table + table[::-1] if len(clique) > 1 else table

    return mock.patch.object(StateRows, "true_table", twice)


def classes_for_nothing() -> AbstractContextManager[Any]:
    """The sizes of the target's classes are read, with noise, but without a charge."""
    return _classes(lambda ledger: Ledger(unit=ledger.unit))


def classes_paid_afterwards() -> AbstractContextManager[Any]:
    """The sizes of the target's classes are read, and then paid for."""
    released = columns.release_classes

    def late(table: Any, lattice: Any, *, epsilon: Fraction, ledger: Ledger, entropy: Any) -> NoisyColumn:
        account = Ledger(unit=ledger.unit)
        found = released(table, lattice, epsilon=epsilon, ledger=account, entropy=entropy)
        ledger.charge(*(event for event in account.events if isinstance(event, Charge)))
        return found

    return mock.patch("spinney.synthesizers.forest.release_classes", late)


def _classes(other: Callable[[Ledger], Ledger]) -> AbstractContextManager[Any]:
    released = columns.release_classes

    def cheap(table: Any, lattice: Any, *, epsilon: Fraction, ledger: Ledger, entropy: Any) -> NoisyColumn:
        return released(table, lattice, epsilon=epsilon, ledger=other(ledger), entropy=entropy)

    return mock.patch("spinney.synthesizers.forest.release_classes", cheap)


def paid_at_the_end() -> AbstractContextManager[Any]:
    """The mechanisms are paid for on an account of their own, and the charge made when the forest is grown."""
    opened = PrepaidMechanisms.__init__

    def free(self: PrepaidMechanisms, plan: ForestPlan, ledger: Ledger, entropy: Any) -> None:
        opened(self, plan, Ledger(limit=plan.epsilon, delta=plan.delta or 0, unit=ledger.unit), entropy)

    return mock.patch.object(PrepaidMechanisms, "__init__", free)


CAGES: dict[str, tuple[Check, Sabotage]] = {
    "a table handed out twice": (nothing_twice, hands_out_twice),
    "levels not counted": (no_deeper_than_paid_for, levels_not_counted),
    "half the sensitivity": (choices_of_bounded_range, half_the_sensitivity),
    "half the sensitivity told": (scores_within_sensitivity, half_the_sensitivity_told),
    "expected from true counts": (scores_within_sensitivity, expected_from_true_counts),
    "overlapping leaves": (one_way_counts_are_of_a_partition, overlapping_leaves),
    "rows left out": (one_way_counts_are_of_a_partition, rows_left_out),
    "overlapping boxes": (clique_counts_are_of_a_partition, boxes_that_overlap),
    "class sizes for nothing": (everything_is_paid_for_first, classes_for_nothing),
    "class sizes paid afterwards": (everything_is_paid_for_first, classes_paid_afterwards),
    "prepaid mechanisms opened on credit": (everything_is_paid_for_first, paid_at_the_end),
}
