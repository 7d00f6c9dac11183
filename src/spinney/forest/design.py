"""Design: what a forest measures, decided from public quantities before any row is read.

How much structure can be measured follows from the number of rows relative to the noise of a table; the design
is the richest structure whose counts stand out from their noise. Only `choose_tree` sees scores of the private
table, and releases nothing but what the exponential mechanism chose.

    structure       pairs of columns chosen into a tree. SENSITIVE up to the choices
    design          structures from rounds to uniform, their shares of the budget, numbers of states
    first tables    the tables that are counted in any case, so that one pass counts them all
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import GAP_STEPS, StateTables
from spinney.errors import BudgetError, ParameterError
from spinney.forest.cliques import MOST_LEAVES
from spinney.forest.plan import ForestPlan, Shape, forest_plan, nothing
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.fit import MOST_PAIRS, sensitivity_squared
from spinney.grid.axes import ColumnAxis, PlaceAxis
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import StageName

# ------------------------------------------------------------------------------------------------------------ structure
# Structure: which columns to look at together, chosen one by one with the exponential mechanism.
#
# A pair's score is how far it is from independence (given the target, where one is named): the L1 distance between
# its table and what released numbers predict, a whole number of small steps. Every choice joins two parts of the
# graph, so the pairs grow into a tree (Kruskal's order), and what was chosen is all that is released.


Pair = tuple[int, int]
Clique = tuple[int, ...]


class Parts:
    """Which columns are joined already: disjoint sets, by number."""

    def __init__(self, n_columns: int) -> None:
        self.numbers = np.arange(n_columns)

    def join(self, pair: Pair) -> bool:
        """Join the parts of two columns; False if they were one."""
        first, second = self.numbers[list(pair)]
        self.numbers[self.numbers == second] = first
        return bool(first != second)


def choose_tree(
    rows: StateTables,
    columns: Sequence[int],
    shares: Sequence[NDArray[np.float64]],
    prepaid: PrepaidMechanisms,
    *,
    required: Sequence[Pair] = (),
    joined: Sequence[Pair] = (),
    by: int | None = None,
    most: int | None = None,
) -> list[Pair]:
    """Pairs that join all columns into a tree: the required ones, then one choice after the other.

    `shares` predicts pairs as `StateTables.true_gaps` says. Pairs that rules require come first and cost nothing.
    What is `joined` was counted together before, and is not among the pairs that are returned. There are `most` choices
    at most.
    """
    parts = Parts(len(rows.sizes))
    n_joined = sum(parts.join(pair) for pair in joined)
    chosen = [pair for pair in required if parts.join(pair)]
    n_open = len(columns) - 1 - n_joined - len(chosen)
    n_open = n_open if most is None else min(n_open, most)
    if n_open < 1:
        return chosen
    pairs = np.array(list(combinations(columns, 2)), dtype=np.int64)
    true_scores = rows.true_gaps(pairs, shares, by)
    # Another row in the place of one changes two cells of a table; one more or less changes one.
    sensitivity = GAP_STEPS * prepaid.plan.unit.factor
    for _ in range(n_open):
        still_open = np.flatnonzero(parts.numbers[pairs[:, 0]] != parts.numbers[pairs[:, 1]])
        pick = still_open[prepaid.choice(true_scores[still_open], sensitivity=sensitivity)]
        pair = (int(pairs[pick, 0]), int(pairs[pick, 1]))
        parts.join(pair)
        chosen.append(pair)
    return chosen


def pairs_of(cliques: Sequence[Clique], target: int | None = None) -> list[Pair]:
    """The pairs within cliques, each once, the target aside: it is counted with every column."""
    found = {
        (min(pair), max(pair)): None
        for clique in cliques
        for pair in combinations([column for column in clique if column != target], 2)
    }
    return list(found)


def n_choices(n_columns: int, n_open: int, required: Sequence[Pair]) -> int:
    """How many pairs join `n_open` of `n_columns` columns into a tree, besides those that join some already."""
    parts = Parts(n_columns)
    return max(0, n_open - 1 - sum(parts.join(pair) for pair in required))


# --------------------------------------------------------------------------------------------------------------- design
# How much structure can be measured follows from the number of rows relative to the noise of a table:
#
#     rounds        in each round, the columns that the model so far describes worst (quality="high")
#     tree          pairs of columns in a tree, or, with a target, triples of two columns and the target
#     target        every column with the target alone (naive Bayes)
#     independent   every column on its own
#     uniform       nothing: the budget is too small to tell any count from noise
#
# The design is the richest of these whose counts stand out from their noise.


Structure = Literal["rounds", "tree", "target", "independent", "uniform"]

# Shares of the budget, before those of stages that a table does not have are given to the others.
_SHARES: dict[tuple[Structure, bool], dict[StageName, str]] = {
    ("rounds", True): {"trees": "0.10", "one-way": "0.25", "pairs": "0.15", "selection": "0.08", "cliques": "0.42"},
    ("rounds", False): {"trees": "0.10", "one-way": "0.40", "selection": "0.08", "cliques": "0.42"},
    ("tree", True): {"trees": "0.10", "one-way": "0.30", "selection": "0.10", "pairs": "0.20", "cliques": "0.30"},
    ("tree", False): {"trees": "0.10", "one-way": "0.40", "selection": "0.08", "cliques": "0.42"},
    ("target", True): {"trees": "0.10", "one-way": "0.20", "pairs": "0.70"},
    ("independent", True): {"trees": "0.25", "one-way": "0.75"},
    ("independent", False): {"trees": "0.25", "one-way": "0.75"},
}
# A structure is worth its noise if the table has at least this many standard deviations of it in rows.
_ROWS_FOR_ROUNDS = 150.0
# More than two rounds a column are worth theirs only with this many: below, fewer tables with less noise are nearer.
_ROWS_FOR_MORE_ROUNDS = 2_000.0
_FEW_ROUNDS = 2.0
_ROWS_FOR_TREE = 30.0
_ROWS_FOR_TARGET = 10.0
# With a rare class all is spent on what tells of it: it needs this many standard deviations in rows for more.
_RARE_CLASS = 4.0
_ROWS_FOR_ANYTHING = 8.0
# Boxes of a clique are expected to hold at least this many standard deviations of the noise.
BOX_DEVIATIONS = 0.5
# Boxes of a column with the target, which few rows may decide: coarser ones would hide a rare class altogether.
PAIR_DEVIATIONS = 0.25
# There are as many states as leave this many standard deviations of the noise to a cell of a pair's table, were all
# cells alike.
_STATE_DEVIATIONS = 8.0
_FEWEST_STATES, MOST_STATES = 8, 32

# Of what a column with a tree is given for its counts, this much goes to the rows at round numbers.
_SPIKES_SHARE = Fraction(1, 8)
# A column whose cells hold one value each is asked in which steps people write it, for this part of the budget, and all
# such columns together for no more than that one: it adds less than half of that to the deviation of all other noise.
_GRAIN_SHARE, _MOST_GRAIN = Fraction(2, 1000), Fraction(16, 1000)
# One place is given a fifth of the budget, n of them n parts of n + 4: a map needs more than a column does. Of that,
# this much goes to the shape of its tree.
_PLACE_PARTS = 4
_REGIONS_SHARE = Fraction(3, 10)
# A place is halved without being asked while its parts can expect this many standard deviations of the noise in rows.
_FIXED_DEVIATIONS = 8.0
_MOST_FIXED = 8

# One stated table is given a fourth of the budget, n of them n parts of n + 3, but never more than half.
_STATED_PARTS = 3
# Choices of where to use a prior are given this much, up to so many of them for each column.
_PRIOR_SHARE = Fraction(5, 100)
_PRIOR_CHOICES = 3
# Columns have at least so many states then: a prior that fits fills their tables without noise.
_PRIOR_STATES = 16

# One vector of products over all pairs is given this much of the budget, out of what choices and cliques have.
_PRODUCTS_SHARE = Fraction(15, 100)
# Never more than this part of what they have.
_MOST_OF_CHOSEN = Fraction(3, 8)
# It is worth that where its mean products, of two groups a column, are off by no more than this.
_MOST_PRODUCTS_ERROR = 0.05

# Relations between columns are looked for with this much of the budget, twice: pairs, and the ratios of some. They are
# worth that where a pair that is equal in this share of the rows stands out of the noise.
_RELATIONS_SHARE = Fraction(1, 100)
_LEAST_RELATED = 0.5
_PAIR_DEVIATIONS_OF_RELATIONS = 4.5

# A fit of products looks at no fewer rows of the model than this.
_FEWEST_DRAWN = 5_000

AnyAxis = ColumnAxis | PlaceAxis


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work a quality is worth: in rounds, and in products of all other pairs."""

    rounds_per_column: tuple[float, ...]  # from the most to the fewest: as many as the budget can pay for
    most_cells: int  # of the model's junction tree
    most_sums: int  # of products
    n_drawn: int  # rows that products are fitted by, at most
    most_looks: int  # how many pairs, times rows, a step of that fit looks at
    steps: int  # of that fit

    def n_drawn_for(self, n_pairs: int) -> int:
        """How many rows to fit the products of so many pairs by."""
        return min(self.n_drawn, max(_FEWEST_DRAWN, self.most_looks // max(n_pairs, 1)))


EFFORTS = {
    "fast": Effort((), 60_000, 2_500, 20_000, 6_000_000, 25),
    "high": Effort((3.0, 2.0, 1.5), 300_000, 3_000, 100_000, 50_000_000, 50),
}
# Files of versions that had a third quality are verified by the plan that it made.
EFFORTS["best"] = replace(EFFORTS["high"], rounds_per_column=(4.0, *EFFORTS["high"].rounds_per_column))


@dataclass(frozen=True, slots=True)
class Design:
    """A plan, and what it is a plan of. Columns are numbered in the order of the schema; known ones are left out."""

    structure: Structure
    plan: ForestPlan
    measured: tuple[int, ...]  # columns that are not known beforehand
    looked_at: tuple[int, ...]  # of them, those that were counted before: the target, where it has classes
    target: int | None
    required: tuple[Clique, ...]  # columns that a rule is about
    most_states: int
    effort: Effort = EFFORTS["fast"]
    fewer_states: Mapping[int, int] = field(default_factory=dict)  # of columns that rules join
    places: tuple[int, ...] = ()  # of the measured ones, those that are places
    n_fixed: int = 0  # levels of their trees that are halved without a decision
    has_prior: bool = False  # whether public rows may stand in for what is not counted
    stated: tuple[Clique, ...] = ()  # columns that the call wants counted together
    stated_cells: int = 0  # of a model of these and of what rules join
    stars: tuple[int, ...] = ()  # besides the target, columns that all others are counted with
    has_plain_pairs: bool = False  # whether pairs of a tree are counted without the target

    def states_of_columns(self, n_columns: int) -> list[int]:
        """About how many states each column gets; of those in stated tables, as many as there are at the most."""
        fixed = {**self.fewer_states, **dict.fromkeys(self.in_stated, MOST_LEAVES)}
        return [fixed.get(column, self.most_states) for column in range(n_columns)]

    @property
    def in_stated(self) -> frozenset[int]:
        """The columns of stated tables."""
        return frozenset(column for clique in self.stated for column in clique)

    @property
    def free(self) -> tuple[int, ...]:
        """The measured columns without the target."""
        return tuple(column for column in self.measured if column != self.target)

    def to_dict(self) -> dict[str, str]:
        """What no charge says, as JSON-ready data, for the card."""
        return {"structure": self.structure, "rule": "forest"}


def design(
    axes: Sequence[AnyAxis],
    *,
    n_rows: int,
    epsilon: Fraction,
    delta: Fraction,
    unit: Unit,
    target: int | None = None,
    required: Sequence[Clique] = (),
    effort: Effort = EFFORTS["fast"],
    class_size: float | None = None,
    stated: Sequence[Clique] = (),
    has_prior: bool = False,
    analyses_share: Fraction | None = None,
    utility_share: Fraction | None = None,
    stars: Sequence[int] = (),
    has_plain_pairs: bool = False,
    has_grain: bool = True,
    n_sought: int = 0,
    plan_of: Callable[[Shape], ForestPlan] | None = None,
) -> Design:
    """The richest design whose noise leaves something to see in about `n_rows` rows.

    `class_size` is the released size of the target's second largest class, where the classes were counted before.
    `stated` are columns that the call wants counted together, `has_prior` says whether it gives public rows,
    `analyses_share` and `utility_share` which parts of the budget the sums of named regressions and figures of utility
    get, if there are any. `n_sought` is how many pairs of columns are looked at for relations. `stars` are columns that
    all others are counted with as with the target, and `has_plain_pairs` says that pairs of a tree are counted without
    it, `has_grain` that columns are asked in which steps their values come; `plan_of` gives the plan of a shape where a
    forest is not all that the budget pays for.
    """
    if analyses_share is not None and not delta:
        raise ParameterError("analyses need a delta, and delta=0; leave delta out, or leave analyses out")
    measured = tuple(column for column, axis in enumerate(axes) if not axis.is_known)
    places = tuple(column for column in measured if isinstance(axes[column], PlaceAxis))
    if target is not None and target not in measured:
        target = None  # known beforehand, so it says nothing about the others
    pairs = tuple(clique for clique in required if len(clique) > 1 and set(clique) <= set(measured))
    stars = tuple(column for column in stars if column in measured and column != target) if target is not None else ()
    stated = [found for clique in stated if (found := tuple(sorted(set(clique).intersection(measured))))]
    looked_at = (target,) if target is not None and class_size is not None else ()
    for structure, rounds_per_column in _worth_trying(len(measured), target, effort):
        shape = _shape(
            structure,
            axes,
            measured,
            target,
            pairs,
            stated,
            rounds_per_column,
            n_counted=len(looked_at),
            has_prior=has_prior,
            analyses_share=analyses_share,
            utility_share=utility_share,
            n_stars=len(stars),
            has_grain=has_grain,
            n_sought=n_sought if delta else 0,
        )
        if structure == "tree" and not shape.times["cliques"]:  # stated tables join all columns
            continue
        shapes = [given for one in _with_or_without_relations(shape) for given in _with_or_without_products(one, delta)]
        for given in shapes:
            try:
                plan = plan_of(given) if plan_of else forest_plan(given, epsilon=epsilon, delta=delta, unit=unit)
            except BudgetError:  # more noise than can be accounted for, so certainly more than is worth having
                continue
            if "relations" in plan.vectors and not _are_relations_worth(plan, n_rows, n_sought):
                continue
            if "products" in plan.vectors and not _are_products_worth(plan, n_rows, len(measured)):
                continue
            if _is_worth(structure, plan, n_rows, class_size, has_more_rounds=rounds_per_column > _FEW_ROUNDS):
                return Design(
                    structure,
                    plan,
                    measured,
                    looked_at,
                    target,
                    pairs,
                    max(_most_states(plan, n_rows), _PRIOR_STATES if has_prior else 0),
                    effort=effort,
                    places=places,
                    n_fixed=_n_fixed(plan, n_rows),
                    stated=tuple(stated),
                    has_prior=has_prior,
                    stars=stars,
                    has_plain_pairs=has_plain_pairs,
                )
    return Design("uniform", nothing(epsilon, delta, unit), looked_at, looked_at, None, pairs, _FEWEST_STATES)


def _with_or_without_products(shape: Shape, delta: Fraction) -> list[Shape]:
    """The shape with a vector of products, whose share choices and cliques give up in proportion, and without it."""
    chosen: tuple[StageName, ...] = ("selection", "cliques")
    giving = [stage for stage in chosen if stage in shape.shares]
    given = sum(shape.shares[stage] for stage in giving)
    if not delta or "cliques" not in giving:
        return [shape]
    taken = min(_PRODUCTS_SHARE, given * _MOST_OF_CHOSEN)
    left = {stage: shape.shares[stage] * (given - taken) / given for stage in giving}
    return [replace(shape, shares={**shape.shares, **left, "products": taken}), shape]


def _with_or_without_relations(shape: Shape) -> list[Shape]:
    """The shape with vectors of relations, where there are pairs of columns to look at, and without them."""
    sought: tuple[StageName, ...] = ("relations", "ratios")
    if not all(shape.shares.get(stage) for stage in sought):
        return [shape]
    left = {stage: share for stage, share in shape.shares.items() if stage not in sought}
    whole = sum(left.values(), Fraction(0))
    return [shape, replace(shape, shares={stage: share / whole for stage, share in left.items()})]


def _are_relations_worth(plan: ForestPlan, n_rows: int, n_sought: int) -> bool:
    """Whether a pair that is equal in half of the rows would stand out of the noise."""
    variance = plan.vectors["relations"].variance(plan.unit.factor * n_sought)
    return _PAIR_DEVIATIONS_OF_RELATIONS * math.sqrt(variance) <= _LEAST_RELATED * n_rows


def _are_products_worth(plan: ForestPlan, n_rows: int, n_measured: int) -> bool:
    """Whether some pair is left, and mean products of all pairs, of two groups a column, have little enough noise."""
    pairs = list(combinations(range(n_measured), 2))
    # With as many tables as there are pairs, all of them are counted: with a target, one of every column with it too.
    n_counted = sum(plan.times(stage) for stage in ("pairs", "cliques") if stage in plan.tables)
    if n_counted >= len(pairs):
        return False
    if "products" not in plan.vectors or len(pairs) > MOST_PAIRS:
        return False
    variance = plan.vectors["products"].variance(sensitivity_squared([2] * n_measured, pairs, plan.unit))
    return math.sqrt(variance) <= _MOST_PRODUCTS_ERROR * n_rows


def _most_states(plan: ForestPlan, n_rows: int) -> int:
    """As many states as rows can fill a pair's table with, a power of two."""
    stage = next((stage for stage in ("cliques", "pairs", "one-way", "places") if stage in plan.tables), None)
    if stage is None:
        return _FEWEST_STATES
    resolution = math.sqrt(n_rows / (_STATE_DEVIATIONS * plan.noise_std(stage)))
    return min(max(1 << math.ceil(math.log2(max(resolution, 1))), _FEWEST_STATES), MOST_STATES)


def _n_fixed(plan: ForestPlan, n_rows: int) -> int:
    """Levels on which places are halved whatever they hold: parts of an even table would stand out of the noise."""
    if "places" not in plan.tables:
        return 0
    n_parts = n_rows / (_FIXED_DEVIATIONS * plan.noise_std("places"))
    return min(max(0, math.floor(math.log2(max(n_parts, 1)))), _MOST_FIXED)


def _worth_trying(n_measured: int, target: int | None, effort: Effort) -> list[tuple[Structure, float]]:
    """Structures from the richest to the poorest, and of rounds how many there are a column."""
    if n_measured <= 1:
        return [("independent", 0.0)]
    least: list[tuple[Structure, float]] = [("independent", 0.0)]
    if target is not None:
        least.insert(0, ("target", 0.0))
    if n_measured == 2 and target is not None:
        return least
    rounds: list[tuple[Structure, float]] = []
    if n_measured > 2:
        rounds = [("rounds", number) for number in effort.rounds_per_column]
    return [*rounds, ("tree", 0.0), *least]


def _is_worth(
    structure: Structure, plan: ForestPlan, n_rows: int, class_size: float | None, *, has_more_rounds: bool
) -> bool:
    asks_for_more = structure in ("rounds", "tree") and "pairs" in plan.tables
    if asks_for_more and class_size is not None and class_size < _RARE_CLASS * plan.noise_std("pairs"):
        return False
    if not plan.tables:  # all columns are known beforehand
        return True
    stage, least = {
        "rounds": ("cliques", _ROWS_FOR_MORE_ROUNDS if has_more_rounds else _ROWS_FOR_ROUNDS),
        "tree": ("cliques", _ROWS_FOR_TREE),
        "target": ("pairs", _ROWS_FOR_TARGET),
        "independent": ("one-way" if "one-way" in plan.tables else "places", _ROWS_FOR_ANYTHING),
    }[structure]
    return n_rows >= least * plan.noise_std(stage)


def n_star_pairs(n_free: int, n_stars: int) -> int:
    """How many tables count all columns with the target, and all but the target with each star."""
    return n_free + n_stars * n_free - n_stars * (n_stars + 1) // 2


def _shape(
    structure: Structure,
    axes: Sequence[AnyAxis],
    measured: Sequence[int],
    target: int | None,
    required: Sequence[Clique],
    stated: Sequence[Clique],
    rounds_per_column: float,
    *,
    n_counted: int,
    has_prior: bool = False,
    analyses_share: Fraction | None = None,
    utility_share: Fraction | None = None,
    n_stars: int = 0,
    has_grain: bool = True,
    n_sought: int = 0,
) -> Shape:
    """How many trees, tables and choices a structure needs."""
    n_free = len(measured) - (target is not None)
    places = [axis for column in measured if isinstance(axis := axes[column], PlaceAxis)]
    columns = [axis for column in measured if isinstance(axis := axes[column], ColumnAxis)]
    trees = [axis.max_levels for axis in columns if axis.ruler is not None]
    has_tree = structure == "tree"
    shares = {stage: Fraction(share) for stage, share in _SHARES[structure, target is not None].items()}
    joined = pairs_of(stated, target)
    n_rounds = math.ceil(rounds_per_column * n_free) if structure == "rounds" else 0
    numbers: dict[StageName, int] = {
        "trees": len(trees),
        "one-way": sum(axis.n_tables for axis in columns) - n_counted,
        "spikes": len(trees),
        "grain": sum(axis.grain is not None for axis in columns) if has_grain else 0,
        "regions": len(places),
        "places": len(places),
        "workload": len(stated),
        "relations": int(n_sought > 0),
        "ratios": int(n_sought > 0),
        "analyses": int(analyses_share is not None),
        "utility": int(utility_share is not None),
        "prior": min(_PRIOR_CHOICES * len(measured), math.comb(len(measured), 2)) if has_prior else 0,
        "selection": n_choices(len(axes), n_free, [*joined, *pairs_of(required, target)]) if has_tree else n_rounds,
        "pairs": n_star_pairs(n_free, n_stars) if target is not None and structure != "independent" else 0,
        "cliques": n_choices(len(axes), n_free, joined) if has_tree else n_rounds,
    }
    shares["spikes"] = shares["one-way"] * Fraction(len(trees), max(1, numbers["one-way"])) * _SPIKES_SHARE
    shares["one-way"] -= shares["spikes"]
    used = sum(shares[stage] for stage in shares if numbers[stage])
    for_places = used * Fraction(len(places), _PLACE_PARTS) if used else Fraction(len(places))
    shares |= {"regions": for_places * _REGIONS_SHARE, "places": for_places * (1 - _REGIONS_SHARE)}
    used += for_places
    shares["workload"] = min(Fraction(len(stated), _STATED_PARTS), Fraction(1)) * (used or Fraction(1))
    used += shares["workload"]
    shares["prior"] = used * _PRIOR_SHARE / (1 - _PRIOR_SHARE)
    used += shares["prior"] * bool(numbers["prior"])
    grain_share = min(_GRAIN_SHARE * numbers["grain"], _MOST_GRAIN)
    shares["grain"] = used * grain_share / (1 - grain_share)
    used += shares["grain"]
    if analyses_share is not None:
        shares["analyses"] = used * analyses_share / (1 - analyses_share)
        used += shares["analyses"]
    if utility_share is not None and used:  # where all columns are known there is nothing to compare
        shares["utility"] = used * utility_share / (1 - utility_share)
        used += shares["utility"]
    if n_sought and used:
        shares |= dict.fromkeys(("relations", "ratios"), used * _RELATIONS_SHARE / (1 - 2 * _RELATIONS_SHARE))
        used += shares["relations"] + shares["ratios"]
    levels: dict[StageName, int] = {
        # Codes of relations that are found make an axis a little longer, and its tree deeper by one level at most.
        "trees": max(trees, default=0) + (n_sought > 0),
        "regions": max((axis.max_levels for axis in places), default=0),
    }
    return Shape(numbers, {stage: share / used for stage, share in shares.items() if numbers[stage]}, levels)


# --------------------------------------------------------------------------------------------------------- first tables
# First tables: what a forest asks of its rows whatever the noise chooses, so that one pass counts all of it.
#
# Without a target all pairs of columns are compared, by a tree once and by rounds in every turn, and the vector of
# all other pairs is made of them. With a target these are compared given the target: tables of three, whose sums are
# the pairs. Only tables of more columns that are chosen later are not among them.


def first_tables(design: Design) -> list[Clique]:
    """The columns of every table that is asked for in any case, in ascending order."""
    found: list[Clique] = [tuple(sorted(clique)) for clique in design.stated]
    target = design.target
    if design.structure in ("rounds", "tree"):
        if target is None or (design.structure == "tree" and design.has_plain_pairs):
            found += combinations(sorted(design.measured), 2)
        else:
            found += [tuple(sorted((*pair, target))) for pair in combinations(design.free, 2)]
    elif design.structure == "target":
        found += [tuple(sorted((column, target))) for column in design.free if target is not None]
    if design.has_prior:
        found += combinations(sorted(design.measured), 2)
    return list(dict.fromkeys(found))


def is_asked_again(design: Design) -> bool:
    """Whether more tables may be asked for later: rounds compare and choose larger ones, a turn at a time."""
    return design.structure == "rounds"
