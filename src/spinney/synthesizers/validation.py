"""Parameters as people give them: turned into the whole numbers that a plan is made of, or refused by name."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal

from spinney.errors import LedgerWarning, ParameterError, PrivacyWarning, SchemaError, SchemaWarning
from spinney.privacy.accounts.places import default_place
from spinney.privacy.budget import parse_fraction
from spinney.privacy.entropy import Entropy, SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.promise import cautions
from spinney.schema.lattice import Lattice
from spinney.schema.people import Tables
from spinney.schema.persons import position_rules
from spinney.schema.rules import PositionRule
from spinney.schema.table import Schema, as_schema
from spinney.shown import as_given
from spinney.tree.plan import LARGEST_SETTING

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


def warn_of_weak_promise(epsilon: Fraction, delta: Fraction, n_rows: int | None) -> None:
    """Tell the caller of `fit`, before anything is spent, of a promise that is weaker than it looks."""
    for caution in cautions(epsilon, delta, n_rows):
        warnings.warn(caution, PrivacyWarning, stacklevel=_levels_to_caller())


def warn_of_privacy(found: Iterable[str]) -> None:
    """Tell the caller of `fit` what came to light about the promise after it was made, by a noisy count of rows."""
    for caution in found:
        warnings.warn(caution, PrivacyWarning, stacklevel=_levels_to_caller())


def warn_of_schema(remarks: Iterable[str]) -> None:
    """Tell the caller of `fit` what the release says about the schema."""
    for remark in remarks:
        warnings.warn(remark, SchemaWarning, stacklevel=_levels_to_caller())


def warn_of_ledger(problem: str) -> None:
    """Tell the caller of `fit` what could not be recorded beside a charge."""
    warnings.warn(problem, LedgerWarning, stacklevel=_levels_to_caller())


def _levels_to_caller() -> int:
    """How far above the function that warns the call of `fit` stands in somebody else's code."""
    levels, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("spinney", "contextlib"):
        levels, frame = levels + 1, frame.f_back
    return levels
