"""Output laws of mechanisms on persons with a few rows, written out for all neighbours: the unit is a person.

A record is the rows of one person, each the number of a cell; a database is a tuple of records. A law is a table of
chances for each label of what was shown before (shapes, choices), whose axes are the noisy numbers. Coins of persons
are mixed over, person by person, as the proof has it (people.proof.md, P0). Formulas come from the mathematics and not
from the source: this is the slow twin of what `people` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations, combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.budget import Unit
from support.gaussian_pairs import discrete_law
from support.output_laws import tail

Record = tuple[int, ...]
Database = tuple[Record, ...]
Floats = NDArray[np.float64]
Law = dict[Any, Floats]
Sums = tuple[int, ...]
# What a person's coins may come to: chances, and what the person adds then.
Outcomes = list[tuple[float, Any]]

UNITS_OF_PERSONS = (Unit.REPLACE_PERSON, Unit.ADD_REMOVE_PERSON)
EPSILONS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])


# ------------------------------------------------------------------------------------------------ neighbours


def records(n_cells: int, most_rows: int, *, least_rows: int = 1) -> list[Record]:
    """All records of so many rows, in one order each."""
    sizes = range(least_rows, most_rows + 1)
    return [record for size in sizes for record in combinations_with_replacement(range(n_cells), size)]


def neighbours(of: Sequence[Record], unit: Unit, common: Iterable[Database]) -> Iterator[tuple[Database, Database]]:
    """All pairs of databases that differ in one person, beside the persons in common; the one that differs is first."""
    for others in common:
        if unit.n_is_public:
            yield from (((one, *others), (other, *others)) for one, other in combinations(of, 2))
        else:
            yield from (((one, *others), others) for one in of)


# ------------------------------------------------------------------------------------------------ laws


def mixed(database: Database, outcomes: Callable[[Record], Outcomes], shown: Callable[[tuple[Any, ...]], Law]) -> Law:
    """The law where every person has coins of their own: `shown` gives it for what they come to."""
    chances: dict[tuple[Any, ...], float] = {}
    for coins in product(*map(outcomes, database)):
        contributions = tuple(sorted(added for _, added in coins))
        chances[contributions] = chances.get(contributions, 0.0) + math.prod(chance for chance, _ in coins)
    return mixture((chance, shown(contributions)) for contributions, chance in chances.items())


def mixture(laws: Iterable[tuple[float, Law]]) -> Law:
    """Laws, each with a chance, together."""
    found: Law = {}
    for chance, law in laws:
        for label, masses in law.items():
            found[label] = found[label] + chance * masses if label in found else chance * masses
    return found


@cache
def noisy(sums: Sums, variance: Fraction, room: int) -> Floats:
    """Chances of sums with discrete Gaussian noise, outcome by outcome, on a grid that does not depend on the sums."""
    laws = [discrete_law(float(variance), total, room=room) for total in sums]
    return reduce(np.multiply.outer, laws)


def added(contributions: Iterable[Sequence[int]], n_sums: int) -> Sums:
    """The sums of what persons add."""
    return tuple(np.sum([np.zeros(n_sums, dtype=int), *map(np.asarray, contributions)], axis=0).tolist())


def deltas(one: Law, other: Law, epsilons: Floats = EPSILONS) -> Floats:
    """The least delta at each epsilon, of the two orders the larger, all outcomes counted."""
    labels = list({**one, **other})
    shape = next(iter({**one, **other}.values())).shape
    p = np.stack([np.broadcast_to(one.get(label, 0.0), shape) for label in labels])
    q = np.stack([np.broadcast_to(other.get(label, 0.0), shape) for label in labels])
    pairs = [(p, q), (q, p)]
    return np.array([max(np.maximum(0, a - math.exp(e) * b).sum() for a, b in pairs) for e in epsilons.tolist()])


def worst_deltas(
    law: Callable[[Database], Law], pairs: Iterable[tuple[Database, Database]], epsilons: Floats = EPSILONS
) -> Floats:
    """The largest deltas of all pairs of neighbours."""
    laws = cache(law)
    worst = np.zeros(len(epsilons))
    for one, other in pairs:
        worst = np.maximum(worst, deltas(laws(one), laws(other), epsilons))
    return worst


# --------------------------------------------------------------------------------------------- what persons add


def units_of(record: Record, units: int, n_cells: int) -> Sums:
    """What a person adds to a table: floor(units / m) for each of m rows."""
    each = units // len(record) if record else 0
    return tuple((each * np.bincount(np.array(record, dtype=int), minlength=n_cells)).tolist())


def kept_at_random(record: Record, most: int) -> Outcomes:
    """Which rows stay where at most so many do, and there is no order: any, each set as likely as the others."""
    if len(record) <= most:
        return [(1.0, record)]
    sets = list(combinations(record, most))
    return [(1 / len(sets), tuple(rows)) for rows in sets]


def one_row(record: Record) -> Outcomes:
    """One random row; of a record without rows none."""
    return [(1 / len(record), (row,)) for row in record] if record else [(1.0, ())]


def two_rows(record: Record) -> Outcomes:
    """Two random rows, in random order; of fewer rows none."""
    pairs = list(permutations(record, 2))
    return [(1 / len(pairs), pair) for pair in pairs] if pairs else [(1.0, ())]


# ------------------------------------------------------------------------------------------------ mechanisms


def shape_law(counts: Sequence[int], *, rate: Fraction, decay: int, cutoff: int, levels: int) -> dict[Any, float]:
    """Which nodes of a PrivTree split: a node is None, or the pair of what its halves do. Chances of all shapes."""

    def below(part: tuple[int, ...], depth: int) -> dict[Any, float]:
        if len(part) == 1 or depth == levels:
            return {None: 1.0}
        score = max(sum(part) - depth * decay, cutoff - decay)
        splits = tail(float(rate), cutoff - score + 1)
        stays = tail(float(rate), score - cutoff)
        half = len(part) // 2
        left, right = below(part[:half], depth + 1), below(part[half:], depth + 1)
        return {None: stays} | {(a, b): splits * p * q for a, p in left.items() for b, q in right.items()}

    return below(tuple(counts), 0)


def choice_law(scores: Sequence[int], epsilon: Fraction, sensitivity: int) -> list[float]:
    """Chances of all places, by the exponential mechanism of a bounded range."""
    rate = float(epsilon) / (2 * sensitivity)
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    return [weight / sum(weights) for weight in weights]
