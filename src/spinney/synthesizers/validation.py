"""Parameters of synthesizers: automatic values from PUBLIC quantities, and checks of what callers state.

The first part computes depths, cutoffs, thresholds and shares from epsilon, the unit, and the number of rows
and columns; the paper's formulas keep the paper's numbers (Lemma 10, Theorem 5; docs/errata.md). The second
part turns parameters into the whole numbers that a plan is made of, or refuses them by name, and issues the
warnings that `fit` owes its caller.
"""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal

from spinney.errors import ParameterError, PrivacyWarning, SchemaError
from spinney.grid.lattice import Lattice
from spinney.privacy.accounts.shared import default_place
from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.composition import cautions
from spinney.privacy.entropy import Entropy, SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.schema.linked import Tables
from spinney.schema.persons import position_rules
from spinney.schema.rules import PositionRule
from spinney.schema.schema import Schema, as_schema
from spinney.text import as_given
from spinney.tree.plan import LARGEST_SETTING

# ------------------------------------------------------------------------------------------------------------- defaults
# Automatic values: functions of public quantities only.
#
# Cutoff and threshold of the paper's rule are the paper's own. The others were chosen once on Balog et al.'s mixtures
# in 2 and 5 dimensions (100,000 rows, epsilon 0.01 to 10) and are kept simple; none of them looks at the table.
# `python -m benchmarks utility` shows what they are worth there.


# The lemma's delta: chance that any empty bin of the paper's tree is split.
_LEMMA_DELTA = 0.01


def grid_bins(n_columns: int, n_rows: int, epsilon: Fraction) -> int:
    """Bins per column: 3.6 (n epsilon)^(1/2d), capped so that there are at most (n epsilon)^1.5 bins in all."""
    return max(2, round(2 ** (_grid_bits(n_columns, n_rows, epsilon) / n_columns)))


def _grid_bits(n_columns: int, n_rows: int, epsilon: Fraction) -> float:
    """Base-2 logarithm of the number of bins that a table of this size and budget can fill."""
    log_size = math.log2(max(2.0, n_rows * float(epsilon)))
    return min(n_columns * math.log2(3.6) + log_size / 2, 1.5 * log_size)


def grid_threshold(lattice: Lattice, epsilon: Fraction, unit: Unit) -> int:
    """Quiet empty bins: of all bins, were they all empty, one is expected to be released."""
    return quiet_threshold(math.log2(math.prod(axis.n_possible for axis in lattice.axes)), epsilon, unit)


def quiet_threshold(log_bins: float, epsilon: Fraction, unit: Unit) -> int:
    """The smallest t with P(noise >= t) <= 2^-log_bins, from P(noise >= t) = a^t / (1 + a)."""
    rate = float(epsilon / unit.factor)
    return max(1, math.ceil((log_bins * math.log(2) - math.log1p(math.exp(-rate))) / rate))


def paper_depths(lattice: Lattice, n_rows: int, epsilon: Fraction) -> tuple[int, int]:
    """The paper's h and h': a quarter as many fixed bins as the grid would have, then two more cuts of every axis."""
    fixed = max(0, round(_grid_bits(lattice.n_axes, n_rows, epsilon)) - 2)
    return min(fixed, lattice.depth), min(fixed + 2 * lattice.n_axes, lattice.depth)


def paper_cutoff(n_rows: int, fixed_depth: int, max_depth: int, epsilon: Fraction, unit: Unit) -> int:
    """The lemma's tau, rounded up. Without noisy levels there is nothing to decide, and no epsilon for it."""
    if max_depth == fixed_depth:
        return 0
    levels = max_depth - fixed_depth
    return math.ceil(lemma_cutoff(n_rows, fixed_depth, levels, float(epsilon), _LEMMA_DELTA, unit.factor))


def lemma_cutoff(n_rows: int, fixed_depth: int, levels: int, epsilon: float, delta: float, factor: int) -> float:
    """The cutoff tau above which, with probability 1 - delta, no empty node of the paper's tree splits. Lemma 10.

    tau = factor (h' - h) / epsilon' · log((2^h + n (h' - h)) / delta).
    """
    log_n_empty = math.log(2**fixed_depth + n_rows * levels)
    return factor * levels / epsilon * (log_n_empty - math.log(delta))


def paper_threshold(fixed_depth: int, epsilon: Fraction) -> int:
    """The paper's t, 8 / epsilon'' * log(1/delta) with delta = 2^-h, in both units as printed for replace-one."""
    return max(1, math.ceil(theorem_threshold(fixed_depth, float(epsilon), Unit.REPLACE_ONE.factor)))


def theorem_threshold(fixed_depth: int, epsilon: float, factor: int) -> float:
    """Theorem 5's threshold for the 2^h bins of the fixed levels, J = 1/delta = 2^h: 4 factor/epsilon'' · h log 2."""
    return 4 * factor / epsilon * fixed_depth * math.log(2)


def privtree_depths(lattice: Lattice) -> tuple[int, int]:
    """No fixed levels, and down to single cells: PrivTree needs neither."""
    return 0, lattice.depth


def moments_depths(lattice: Lattice, n_rows: int, epsilon: Fraction) -> tuple[int, int]:
    """Fixed levels that halve every axis alike, four or more in all, fewer where there is less to tell; none below."""
    n_axes = lattice.n_axes
    log_size = math.log2(max(1.0, n_rows * float(epsilon)))
    fixed = max(0, min(n_axes * math.ceil(4 / n_axes), round(log_size / 2)))
    return min(fixed, lattice.depth), lattice.depth


def moments_share(n_rows: int, epsilon: Fraction) -> Fraction:
    """The part of epsilon for the shape of the tree: a tenth, or a fifth where there is little to tell at all."""
    return Fraction(1, 5) if n_rows * epsilon < 4000 else Fraction(1, 10)


def moments_decay(n_columns: int) -> Fraction:
    """How much stronger than PrivTree's the bias against splitting is: 4 / d, at least 1.

    A leaf with a mean says more than a leaf without, so leaves may be larger; the more so the fewer its neighbours.
    """
    return max(Fraction(1), Fraction(4, n_columns))


def privtree_threshold(fixed_depth: int, epsilon: Fraction, unit: Unit) -> int:
    """Twice the scale of the leaf noise, or more where fixed levels make many empty bins."""
    return max(math.ceil(2 * unit.factor / epsilon), quiet_threshold(fixed_depth, epsilon, unit))


# ----------------------------------------------------------------------------------------------------------- validation
# Parameters as people give them: turned into the whole numbers that a plan is made of, or refused by name.


# An account, its path or address, None for that of the machine if it has one, False for none.
LedgerLike = Ledger | str | os.PathLike[str] | Literal[False] | None


def parse_cutoff(cutoff: Any, name: str = "cutoff") -> int:
    """The largest noisy score that does not split: integers are above a number where they are above its floor."""
    return _in_range(math.floor(parse_fraction(cutoff, name)), cutoff, name)


def parse_threshold(threshold: Any, name: str = "threshold") -> int:
    """The smallest noisy count that is released: at least the threshold, and at least 1 (an empty bin says nothing)."""
    return max(1, _in_range(math.ceil(parse_fraction(threshold, name)), threshold, name))


def parse_depth(depth: Any, name: str) -> int:
    """A number of levels of a tree."""
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 0:
        raise ParameterError(f"{name}={as_given(depth)} is not a whole number of levels")
    return int(depth)


def check_depth(depth: int | None, name: str, lattice: Lattice) -> None:
    """Refuse a depth that a lattice does not have. Where bounds are found on the way, depths are cut instead."""
    if depth is not None and depth > lattice.depth:
        raise ParameterError(
            f"{name}={depth} is not in 0..{lattice.depth}; set larger `bits` on the columns for deeper trees"
        )


def _in_range(number: int, stated: Any, name: str) -> int:
    if not 0 <= number < LARGEST_SETTING:
        raise ParameterError(f"{name}={str(stated) if isinstance(stated, str) else as_given(stated)} is not in 0..2^60")
    return number


def rows_alone(schema: Any, system: str) -> Schema:
    """The schema of a table in which each row is a person; a SchemaError where rows belong to persons."""
    if isinstance(schema, Tables):
        raise SchemaError(f"{system} takes one table; model linked tables with sp.LinkedSynthesizer")
    stated = as_schema(schema)
    if stated.person is not None:
        raise SchemaError(
            f"the schema states person={stated.person!r}, and {system} protects rows, not persons; use "
            "sp.LinkedSynthesizer, or take person out of the schema if every row is another person"
        )
    for rule in position_rules(stated.rules):
        raise SchemaError(of_nobody(rule))
    return stated


def of_nobody(rule: PositionRule) -> str:
    """What is said of a rule about positions in a schema without persons."""
    return (
        f"{rule!r} is about the rows of a person, and the schema does not say whose rows they are; state person='...' "
        "and use sp.LinkedSynthesizer, or drop the rule"
    )


def checked_rows(n_rows: Any) -> int | None:
    """A public guess of the number of rows; None where there is none."""
    if n_rows is None:
        return None
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 1:
        raise ParameterError(
            f"assumed_rows={as_given(n_rows)} is not a positive whole number; leave it out to have rows counted with "
            "noise"
        )
    return int(n_rows)


def checked_ledger(ledger: Any) -> Ledger | None:
    """The account that was given; where none was, that of this machine, if it has one; False is none in so many words.

    A path or an address is that of a ledger that exists.
    """
    if ledger is False:
        return None
    if ledger is None:
        place = default_place()
        return None if place is None else Ledger.open(place)
    if isinstance(ledger, Ledger):
        return ledger
    if isinstance(ledger, (str, os.PathLike)):
        return Ledger.open(os.fsdecode(ledger))
    raise ParameterError(
        f"ledger is a {type(ledger).__name__}, not a Ledger or the path or address of one; leave it out, say "
        "ledger=False for none, or make one: sp.Ledger(limit=3)"
    )


def checked_entropy(entropy: Any) -> Entropy:
    """The source of noise that was given, by default the operating system's. Any other brands the release."""
    if entropy is None:
        return SystemEntropy()
    if isinstance(entropy, type) or not callable(getattr(entropy, "words", None)):
        raise ParameterError(
            f"entropy is a {type(entropy).__name__}, not a source of noise; leave it out, or, where noise must repeat "
            "and nobody needs protection, pass sp.UnsafeSeededEntropy(seed)"
        )
    source: Entropy = entropy
    return source


def warn_caller(found: Iterable[str], category: type[Warning]) -> None:
    """Tell the caller of `fit` what came to light of the promise, of the schema or of the ledger."""
    for sentence in found:
        warnings.warn(sentence, category, stacklevel=_levels_to_caller())


def warn_of_weak_promise(epsilon: Fraction, delta: Fraction, n_rows: int | None) -> None:
    """Tell the caller of `fit`, before anything is spent, of a promise that is weaker than it looks."""
    warn_caller(cautions(epsilon, delta, n_rows), PrivacyWarning)


def _levels_to_caller() -> int:
    """How far above the function that warns the call of `fit` stands in somebody else's code."""
    levels, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("spinney", "contextlib"):
        levels, frame = levels + 1, frame.f_back
    return levels
