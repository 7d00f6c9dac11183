"""The verification of a release: its guarantee worked out again, what was compared, and what was not.

`Release.verify` and `spinney verify` are this. The file is looked at where the release was read from one, and what
stands outside of it where it is given: the schema that was stated, the ledger that was charged, signatures. No
file can prove that noise was really drawn. What needs no synthesizer is in `release/verify.py`, and is found once,
when a release is read.

    verification     the checks in their order, and what they found
    evidence         the stated schema, the ledger, the signatures
    utility check    what figures of utility are of, found again from the release
    plan check       the plan made again from the call

Plans and figures change from version to version, so a difference is a contradiction only for a card of this
version, commit included; of other versions it is only reported whether the numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.errors import FileError, ParameterError
from spinney.files import commit_of, full_version
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.privacy.accounts.shared import SharedLedger, store_at
from spinney.privacy.accounts.verifying import numbered
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.composition import default_delta
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge, total_delta, total_epsilon
from spinney.progress import waiting
from spinney.release.card import NOISY_ROWS, Card, ContradictionError, check, plan_entries
from spinney.release.file import check_contents, digest, file_digest
from spinney.release.provenance import (
    ENDING,
    Signature,
    VerificationReport,
    check_signature,
    compare_schema,
    find_charge,
    load_public_key,
    read_signature,
    signature_inside,
)
from spinney.release.release import Release, row_generator
from spinney.release.utility import UTILITY
from spinney.release.verify import verification
from spinney.schema.linked import Tables, schema_digest
from spinney.schema.plain import parse_toml, read_schema_text
from spinney.schema.schema import Schema
from spinney.synthesizers.base import PublicFacts, Synthesizer
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.partition import GridSynthesizer, PaperTreeSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.synthesizers.utility import (
    MOST_STATES,
    SEED,
    compared_pairs,
    drawn_shares,
    even_cuts,
    n_drawn_rows,
    sampling_error,
)
from spinney.text import as_given, brief
from spinney.tree.plan import SplitPlan

# --------------------------------------------------------------------------------------------------------- verification


_UNASKED = {
    "schema": "that the schema is the one that was stated beforehand",
    "ledger": "that a ledger was charged for this release",
}


def verify(
    release: Release, *, schema: Any = None, ledger: Any = None, key: Any = None, signature: Any = None
) -> VerificationReport:
    """Check a release, its file where it has one, and what is given to compare it with; a FileError where it fails."""
    if signature is not None and key is None:
        raise ParameterError("signature needs key, the public key of whoever signed: --key FILE")
    path = release.file
    name = "the release" if path is None else str(path)
    found_digest = digest(release) if path is None else file_digest(path)
    guarantee, checks, others = verified_numbers(name, release)
    evidence: dict[str, Any] = {}
    for what, given, compare in (("schema", schema, _schema), ("ledger", ledger, _ledger)):
        if given is None:
            others.append({"what": _UNASKED[what], "why": f"no {what} was given"})
            continue
        evidence[what] = compare(given, release)
        checks += evidence[what].pop("checks")
        others += evidence[what].pop("not_checked", [])
    evidence["signatures"], unsigned = _signatures(path, key, signature)
    checks += [held["check"] for held in evidence["signatures"]]
    others += unsigned
    if path is None:
        others.append({"what": "what else its file holds", "why": "the release was not read from a file"})
    else:
        plain, not_plain = check_contents(name, release)
        checks, others = [*checks, *plain], [*others, *not_plain]
        if found_digest != file_digest(path):
            raise FileError(f"{name!r} changed while it was read; verify it again when nothing writes to it")
    return VerificationReport(name, _entries(release, found_digest), guarantee, evidence, tuple(checks), tuple(others))


def verified_numbers(path: str, release: Release) -> tuple[str, list[str], list[Mapping[str, str]]]:
    """The guarantee of a release worked out again, what was checked, in words, and what was not and why.

    The model is fitted again to the numbers that the release holds, which may take long.

    Args:
        path: where it was read from, for the error.
        release: what was read.

    Raises:
        FileError: the numbers contradict each other.
    """
    try:
        found = release._verified or verification(release)
        refitted = release.verify_model()
        planned, unplanned = check_plan(release)
        compared, not_compared = check_figures(release)
    except ContradictionError as err:
        raise FileError(f"{path!r} is a Spinney release with inconsistent contents: {err}") from err
    others = [*unplanned, *not_compared, *found.not_checked]
    return found.guarantee, [*found.checks, *refitted, *planned, *compared], others


def _entries(release: Release, found_digest: str) -> dict[str, Any]:
    card = release.card
    return {
        "is_private": card.is_private,
        "epsilon": str(card.epsilon),
        "delta": str(card.delta),
        "unit": card.unit,
        "digest": found_digest,
        "schema_digest": schema_digest(card.schema if card.people is None else card.people),
        "spinney_version": card.spinney_version,
        "commit": commit_of(card.spinney_version),
    }


# ------------------------------------------------------------------------------------------------------------- evidence
# What stands outside the release file: its stated schema, the ledger that was charged, signatures.


_MOST_DIFFERENCES = 20


def _schema(given: Any, release: Release) -> dict[str, Any]:
    """The stated schema is that of the release, but for what a fit fills in; a FileError says what differs."""
    named = "the schema given" if isinstance(given, (Schema, Tables)) else repr(str(given))
    stated = given if isinstance(given, (Schema, Tables)) else _stated(given)
    differences, filled_in = compare_schema(stated, release.card)
    if differences:
        shown = "; ".join(differences[:_MOST_DIFFERENCES])
        more = len(differences) - _MOST_DIFFERENCES
        raise FileError(
            f"{named} is not the schema of this release: {shown}{f'; and {more} more differences' if more > 0 else ''}"
        )
    named = named if named == "the schema given" else f"the schema {named}"
    digest_of_stated = schema_digest(stated)
    return {
        "file": None if isinstance(given, (Schema, Tables)) else str(given),
        "digest": digest_of_stated,
        "filled_in": filled_in,
        "checks": [f"{named} (sha256 {digest_of_stated}) is that of the release", *filled_in],
    }


def _stated(path: Any) -> Schema | Tables:
    """A schema file, or a file of linked tables."""
    if not isinstance(path, (str, Path)):
        raise ParameterError(f"schema={as_given(path)} is neither a schema, nor linked tables, nor the file of either")
    is_of_tables = "tables" in parse_toml(read_schema_text(path))
    return Tables.from_file(path) if is_of_tables else Schema.from_file(path)


def _ledger(given: Any, release: Release) -> dict[str, Any]:
    """The ledger holds the charges of the release; a FileError where it does not."""
    ledger, place = given, None
    if not isinstance(given, (Ledger, str, PathLike)):
        raise ParameterError(f"ledger={as_given(given)} is not a ledger, nor the path or address of one")
    if not isinstance(given, Ledger):
        place = str(given)
        ledger = SharedLedger(store_at(place))
    named = "the ledger given" if place is None else f"the ledger {place!r}"
    found = find_charge(ledger, release)
    if found is None and not release.card.events:
        return {"file": place, "checks": ["the release was charged nothing, so no ledger has to hold it"]}
    if found is None:
        raise FileError(
            f"{named} does not hold the charges of this release: it is another ledger, or the release was made without "
            "charging it"
        )
    which = numbered(found.entries) + ("" if found.population is None else f" of the population {found.population!r}")
    check = f"{named} holds these very charges: {which}"
    if found.by_digest:
        check = f"{named} names this very release, with the charges on its card: {found.said}"
    others = []
    if not found.by_digest:
        many = "" if found.n_runs == 1 else f"; it holds such charges {found.n_runs} times"
        why = f"the ledger says what was charged, not for which file{many}"
        others.append({"what": "that the ledger was charged for this very file", "why": why})
    described: dict[str, Any] = {
        "file": place,
        "first_entry": found.entries[0],
        "n_entries": found.n_events,
        "times_held": found.n_runs,
    }
    described |= {"entries": list(found.entries), "population": found.population}
    return described | {"checks": [check], "not_checked": others}


def _signatures(path: Path | None, key: Any, signature: Any) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """All signatures that there are hold, by the key; without a key, what was not checked."""
    if key is not None and path is None:
        raise ParameterError(
            "key: a signature is of a file; save the release, have it signed, and verify sp.load(FILE)"
        )
    beside = Path(f"{path}{ENDING}")
    found: dict[str, Callable[[], Signature]] = {}
    if signature is not None or (path is not None and beside.is_file()):
        named = beside if signature is None else signature
        found[f"the signature {str(named)!r}"] = lambda: read_signature(named)
    inside = None if path is None else signature_inside(path)
    if inside is not None:
        found["the signature inside the file"] = lambda: inside
    if key is None:
        why = "no key was given" if found else "there is no signature"
        return [], [{"what": "who vouches for the file", "why": why}]
    assert path is not None
    if not found:
        raise FileError(f"{str(path)!r} is not signed: there is no {str(beside)!r}, and no signature inside it")
    public, held = load_public_key(key), []
    for where, read in found.items():
        signed = read()
        check_signature(signed, path, public, where)
        said = f"{where} holds: by the key {signed.key[:16]}..., at {signed.signed_at} by the signer's word"
        held.append({"check": said, "key": signed.key, "signed_at": signed.signed_at})
    return held, []


# -------------------------------------------------------------------------------------------------------- utility check
# What figures of utility are of, computed again from the release: columns, pairs, cells, drawn rows, sampling.
#
# The noise of a figure follows from its charge (`release/verify.py`), and its interval also from how many cells
# were compared; what the figure means, from how many columns and pairs, and from how many rows were drawn. All
# of that follows from the schema and the model. The sampling error is found again by drawing the same rows:
# streams of random numbers may differ between machines in their last digits, so it is compared up to a small
# part of it.


_UTILITY_WHAT = "what the figures of utility are of"
_UTILITY_SLACK = 0.02
_AT_ONCE = 1 << 17


def check_figures(release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """What was compared, in words, and what was not and why; ContradictionError where this version finds otherwise."""
    card = release.card
    entry = card.design.get(UTILITY)
    if entry is None:
        return [], []
    difference = _utility_difference(release, entry)
    if difference is None:
        return ["the columns, pairs, cells and drawn rows of the figures of utility, found again from the release"], []
    wrong = "the figures of utility are of something else than the release"
    return [], [_not_judged(card, _UTILITY_WHAT, difference, wrong=wrong, verb="compares")]


def _not_judged(card: Card, what: str, difference: str, *, wrong: str, verb: str) -> dict[str, str]:
    """What was not checked, and why: another version made it. A ContradictionError where it was this one."""
    check(card.spinney_version != full_version(), f"{wrong}: {difference}")
    why = f"it was made by spinney {card.spinney_version}, and this version {verb} otherwise ({difference})"
    return {"what": what, "why": why}


def _utility_difference(release: Release, entry: dict[str, Any]) -> str | None:
    """The first number that differs, in words."""
    sizes = _compared_sizes(release)
    pairs = compared_pairs(len(sizes))
    cells = [max(sizes, default=0), *([max(sizes[i] * sizes[j] for i, j in pairs)] if pairs else [])]
    wanted: dict[str, Any] = {
        "columns": len(sizes),
        "pairs": len(pairs),
        "cells": cells,
        "drawn_rows": n_drawn_rows(release),
    }
    for name, value in wanted.items():
        if entry[name] != value:
            return f"{name} would be {brief(value)} and is {brief(entry[name])}"
    for what, stated, found in zip(("columns", "pairs"), entry["sampling"], _sampling(release, pairs), strict=False):
        if not math.isclose(stated, found, rel_tol=_UTILITY_SLACK, abs_tol=2e-6):
            return f"the sampling error of {what} would be {found:.6f} and is {brief(stated)}"
    return None


def _compared_sizes(release: Release) -> list[int]:
    """How many states each compared column or place has; those with one are not compared."""
    if isinstance(release, ForestRelease):
        sizes = list(release.model.tree.sizes)
    else:
        sizes = [cut.n_states for cut in even_cuts(release.card.schema._modelled)]
    return [min(size, MOST_STATES) for size in sizes if size > 1]


@waiting("drawing the rows of figures of utility again")
def _sampling(release: Release, pairs: list[Clique]) -> list[float]:
    """The mean sampling error of tables of one column, and of two."""
    n_rows = n_drawn_rows(release)
    singles: list[Clique] = [(column,) for column in range(len(_compared_sizes(release)))]
    cliques = [*singles, *pairs]
    if isinstance(release, ForestRelease):
        shares = _state_shares(release, cliques, n_rows)
    else:
        cuts = [cut for cut in even_cuts(release.card.schema._modelled) if cut.n_states > 1]
        shares = drawn_shares(release, cuts, cliques, n_rows)
    errors = [sampling_error(table, n_rows) for table in shares]
    ends = [0, len(singles), *([len(cliques)] if pairs else [])]
    return [float(np.mean(errors[low:high])) for low, high in pairwise(ends)]


def _state_shares(release: ForestRelease, cliques: list[Clique], n_rows: int) -> list[NDArray[np.float64]]:
    """Shares of states among rows drawn from a forest: the states that its columns are compared in."""
    sizes = release.model.tree.sizes
    kept = [place for place, size in enumerate(sizes) if size > 1]
    counts = [np.zeros(math.prod(min(sizes[kept[column]], MOST_STATES) for column in clique)) for clique in cliques]
    rng = row_generator(SEED, release.stream)
    for begin in range(0, n_rows, _AT_ONCE):
        states, _ = release.drawn(min(_AT_ONCE, n_rows - begin), rng)
        coarse = [_coarse(states[place], sizes[place]) for place in kept]
        for place, clique in enumerate(cliques):
            codes = coarse[clique[0]]
            for column in clique[1:]:
                codes = codes * min(sizes[kept[column]], MOST_STATES) + coarse[column]
            counts[place] += np.bincount(codes, minlength=len(counts[place]))
    return [table / n_rows for table in counts]


def _coarse(states: NDArray[np.int32], n_states: int) -> NDArray[np.int64]:
    wide = states.astype(np.int64)
    return wide if n_states <= MOST_STATES else wide * MOST_STATES // n_states


# ----------------------------------------------------------------------------------------------------------- plan check
# The plan that a call makes of what its card states, to compare with the plan on the card.
#
# Automatic values (depths, thresholds, noise of every stage) follow from public quantities: the schema, the
# number of rows, the budget and the parameters. All of these stand on the card, so the plan can be made again.
# A card whose budget was lowered, and whose plan was not, is found out.


_SYNTHESIZERS: dict[str, type[Synthesizer[Any]]] = {
    kind.__name__: kind for kind in (KDTreeSynthesizer, GridSynthesizer, PaperTreeSynthesizer, ForestSynthesizer)
}
# Noise that is found by search may come out otherwise on another machine, by less than this part of it.
_SLACK = 0.01
_WHAT = "that the plan is the one that such a call makes"
# What a plan follows from, or does not plan.
_BEFORE = ("rows", "bounds", "classes", "values", "utility")


def check_plan(release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """What was compared, in words, and what was not and why; ContradictionError where this version plans otherwise."""
    card = release.card
    kind = _SYNTHESIZERS.get(card.synthesizer)
    if kind is None and not isinstance(release, PeopleRelease):
        return [], [{"what": _WHAT, "why": f"plans of {brief(card.synthesizer)} are not made again"}]
    try:
        wanted = _plan(kind, release)
    except Exception:  # parameters of a file may be anything, and what they lead to says nothing else
        wanted = None
    difference = "no plan can be made of its parameters" if wanted is None else _difference(wanted, card.plan)
    if difference is None:
        return ["the plan was made again from the call, the schema and the number of rows, and is the same"], []
    wrong = "the plan is not the one that such a call makes"
    return [], [_not_judged(card, _WHAT, difference, wrong=wrong, verb="plans")]


def _plan(kind: type[Synthesizer[Any]] | None, release: Release) -> Mapping[str, Any]:
    """The plan of the call on a card, as its entries."""
    card = release.card
    if isinstance(release, PeopleRelease):
        return LinkedSynthesizer(**card.parameters).planned(release.shape, _facts(card))
    assert kind is not None
    # Cards of earlier versions say nothing of relations, which were not looked for.
    before = {"relations": "stated"} if kind is ForestSynthesizer else {}
    model: Synthesizer[Any] = kind(**{**before, **card.parameters})
    facts = _facts(card)
    if not isinstance(model, ForestSynthesizer):
        plan: SplitPlan = model._design(facts)[1]  # type: ignore[attr-defined]
        return plan_entries(plan.to_dict(), plan.charges(), facts.unit)
    if not isinstance(release, ForestRelease):
        raise ValueError("a forest is the maker of what is none")
    class_size = None
    if model._counts_classes(facts.schema):
        columns = () if release.measured is None else release.measured.columns
        counted = columns[release.variables.index(str(model.target))]
        if counted is None:
            raise ValueError("the sizes of the target's classes are not in the file")
        class_size = float(np.sort(counted.noisy)[-2])
    design = model._design(facts, class_size=class_size)
    return plan_entries(design.to_dict(), design.plan.charges, facts.unit)


def _facts(card: Card) -> PublicFacts:
    """What the plan followed from: all that was charged for something else was charged before."""
    unit, counted = Unit.parse(card.unit), card.row_count
    n_rows = card.n_rows if card.n_rows is not None else (counted.expected if counted else card.assumed_rows)
    charges = [event for event in card.events if isinstance(event, Charge)]
    spent = [charge for charge in charges if getattr(charge, "stage", None) not in _BEFORE]
    epsilon, delta = total_epsilon(spent), total_delta(spent)
    if not spent:  # nothing was worth its noise: what the call left for it
        stated = card.parameters.get("delta", 0)
        epsilon = parse_epsilon(card.parameters["epsilon"]) - card.epsilon
        delta = (default_delta(n_rows or 1) if stated is None else parse_delta(stated)) - card.delta
    found_bounds = "bounds" in card.stages
    schema = card.schema._without_found()
    return PublicFacts(schema, epsilon, delta, unit, n_rows or 1, found_bounds=found_bounds, row_count=counted)


def _difference(wanted: Mapping[str, Any], stated: Mapping[str, Any]) -> str | None:
    """The first entry that differs, in words."""
    stated = {name: value for name, value in stated.items() if name not in (NOISY_ROWS, UTILITY)}
    for name in dict.fromkeys([*wanted, *stated]):
        one, other = wanted.get(name), stated.get(name)
        if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
            is_same = math.isclose(one, other, rel_tol=_SLACK, abs_tol=1e-6)
        else:
            is_same = one == other
        if not is_same:
            return f"{name} would be {brief(one)} and is {brief(other)}"
    return None
