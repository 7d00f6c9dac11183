"""Transcripts: what the mechanisms of a fit were asked and put out, replayed on a neighbouring table.

A fit is a conversation with its mechanisms. Record one, and fit a neighbour while every mechanism puts out what it put
out before: then what the mechanisms are asked may differ by what one unit of privacy moves, as the charge says, and by
nothing else, and the two releases are the same. Fits of rows and of persons use the same mechanisms
(`PrepaidMechanisms`), so one check serves both; figures of utility of pure releases have one of their own. Nothing here
trusts the code that computes what is asked.

Coins of persons (`PrefixCoins`) are those of the person's number, so the neighbour has them too: the unit that differs
comes last in its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partialmethod
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import UNITS
from spinney.tree.bought import PaidFigures
from spinney.tree.ranges import Ranges, Regions

Integers = NDArray[np.int64]

METHODS = ("noisy_counts", "noisy_units", "noisy_sums", "choice", "ranges", "regions")
# Steps of a row that figures of utility are counted in; written down here too, so that nothing there is trusted.
FIGURE_STEPS = 1 << 10


@dataclass(frozen=True, slots=True)
class Call:
    """One question to a mechanism: what is public about it, what it is asked about, and what came out."""

    method: str
    stage: str
    public: tuple[Any, ...]
    true: Any  # whole numbers, or a dictionary of cells
    output: Any


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a question moved from one table to the other, by the norms of its mechanism, and what was paid for."""

    method: str
    stage: str
    moved: tuple[float, ...]
    allowed: tuple[float, ...]
    is_same_question: bool

    @property
    def is_within(self) -> bool:
        return self.is_same_question and all(a <= b for a, b in zip(self.moved, self.allowed, strict=True))

    @property
    def tightness(self) -> float:
        """The share of what was allowed that was used."""
        return max(a / b if a else 0.0 for a, b in zip(self.moved, self.allowed, strict=True))


@contextmanager
def recorded(seed: int = 1) -> Iterator[list[Call]]:
    """Fits write down their questions. Their noise has entropy of its own, so that public draws repeat without it."""
    calls: list[Call] = []
    entropy = UnsafeSeededEntropy(seed)

    def ask(self: Any, original: Any, method: str, *args: Any, **options: Any) -> Any:
        stage, public, true = _question(method, *args, **options)
        of_the_fit = self._entropy
        self._entropy = entropy
        try:
            output = original(self, *args, **options)
        finally:
            self._entropy = of_the_fit
        calls.append(Call(method, stage, public, true, _shape_of(output)))
        return output

    with _patched(ask):
        yield calls


@contextmanager
def replayed(calls: list[Call]) -> Iterator[list[Moved]]:
    """Fits get the answers of a transcript, and what they ask is compared with it."""
    moves: list[Moved] = []
    left = iter(calls)

    def ask(self: Any, original: Any, method: str, *args: Any, **options: Any) -> Any:
        stage, public, true = _question(method, *args, **options)
        before = next(left, None)
        assert before is not None, f"the neighbour asks for {stage!r} where the first table asked for nothing more"
        is_same = (method, stage, repr(public)) == (before.method, before.stage, repr(before.public))
        assert (method, stage) == (before.method, before.stage), "the neighbour asks something else"
        unit = self.unit if isinstance(self, PaidFigures) else self.plan.unit
        if not isinstance(self, PaidFigures):
            self._take(stage)
        moved, allowed = _distances(method, unit.factor, before, true, options, args)
        moves.append(Moved(method, stage, moved, allowed, is_same))
        if method == "choice" and options.get("accepts") is not None:
            options["accepts"](before.output)
        return _answer(before.output, args[0])

    with _patched(ask):
        yield moves
    assert next(left, None) is None, "the neighbour asks less than the first table"


def compare(
    fit: Callable[[Any], Any], table: Any, *neighbours: Any, contents: Callable[[Any], Any] | None = None
) -> Iterator[Moved]:
    """Fit a table and replay on its neighbours, one after the other: how far every question moved.

    All that is released must be the same: what a file of the release holds, or what `contents` gives of the model.
    """
    held = held_in_file if contents is None else contents
    with recorded() as calls:
        one = held(fit(table))
    for neighbour in neighbours:
        with replayed(calls) as moves:
            other = held(fit(neighbour))
        assert one == other, "something is released that the mechanisms did not put out"
        yield from moves


def failures(moves: Iterable[Moved]) -> list[Moved]:
    """Questions that moved further than was paid for, or whose public part differs."""
    return [move for move in moves if not move.is_within]


# ------------------------------------------------------------------------------------------------ coins of persons


class PrefixCoins(np.random.Generator):
    """Draws that begin anew with every call, so that the i-th of a call is the same however many follow it.

    Permutations are the identity: persons keep the order of their table.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.PCG64(seed))
        self._seed, self._n_calls = seed, 0

    def permutation(self, x: Any, axis: int = 0) -> Any:
        return np.arange(x) if isinstance(x, (int, np.integer)) else np.array(x)

    def _anew(self) -> np.random.Generator:
        self._n_calls += 1
        return np.random.Generator(np.random.PCG64([self._seed, self._n_calls]))


def _begin_anew(name: str) -> Callable[..., Any]:
    return lambda self, *args, **options: getattr(self._anew(), name)(*args, **options)


for _name in ("random", "standard_normal", "normal", "integers", "uniform", "multinomial", "choice", "binomial"):
    setattr(PrefixCoins, _name, _begin_anew(_name))


@contextmanager
def coins_by_person() -> Iterator[None]:
    """Generators that fits of persons make for coins are `PrefixCoins`."""

    def default_rng(seed: Any = None) -> np.random.Generator:
        return seed if isinstance(seed, np.random.Generator) else PrefixCoins(0)

    with mock.patch("numpy.random.default_rng", default_rng):
        yield


# ------------------------------------------------------------------------------------------------ questions


@contextmanager
def _patched(ask: Callable[..., Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for method in METHODS:
            if hasattr(PrepaidMechanisms, method):
                original = getattr(PrepaidMechanisms, method)
                asked = partialmethod(ask, original, method)
                stack.enter_context(mock.patch.object(PrepaidMechanisms, method, asked))
        figures = partialmethod(ask, PaidFigures.noisy_figures, "noisy_figures")
        stack.enter_context(mock.patch.object(PaidFigures, "noisy_figures", figures))
        yield


def _question(method: str, *args: Any, **options: Any) -> tuple[str, tuple[Any, ...], Any]:
    """Stage, what is public, and what is true."""
    if method in ("ranges", "regions"):
        roots = options.get("roots")
        stage = options.get("stage", {"ranges": "trees", "regions": "regions"}[method])
        of_tree = (options["cutoff"], options.get("n_fixed"), None if roots is None else roots.tolist())
        return stage, of_tree, _cells(args[0])
    true = np.array(args[0], dtype=np.int64)
    if method == "noisy_figures":
        return "utility", (len(true),), true
    if method == "choice":
        return options.get("stage", "selection"), (len(true), options["sensitivity"]), true
    if method == "noisy_sums":
        given = dict(zip(("sensitivity_squared", "stage"), args[1:], strict=False)) | options
        return given.get("stage", "products"), (len(true), given["sensitivity_squared"]), true
    return (args[1] if len(args) > 1 else options["stage"]), (len(true),), true


def _cells(counts: CellCounts) -> dict[tuple[int, ...], int]:
    """How many rows are in each occupied cell, whatever order rows are held in."""
    of_rows = np.ones(len(counts), dtype=np.int64) if counts.true_counts is None else counts.true_counts
    found: dict[tuple[int, ...], int] = {}
    for code, n in zip(map(tuple, counts.true_codes.tolist()), of_rows.tolist(), strict=True):
        found[code] = found.get(code, 0) + n
    return found


def _distances(
    method: str, factor: int, before: Call, true: Any, options: dict[str, Any], args: tuple[Any, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if method in ("ranges", "regions"):
        steps = [abs(true.get(cell, 0) - before.true.get(cell, 0)) for cell in {*true, *before.true}]
        return (float(sum(steps)), float(max(steps, default=0))), (float(factor), 1.0)
    if len(true) != len(before.true):
        return (np.inf,), (1.0,)
    steps = [abs(a - b) for a, b in zip(true.tolist(), before.true.tolist(), strict=True)]
    total, squared, largest = sum(steps), sum(step**2 for step in steps), max(steps, default=0)
    if method == "noisy_counts":
        return (float(total), float(largest)), (float(factor), 1.0)
    if method == "noisy_units":
        return (float(total), float(squared)), (float(factor * UNITS), float(factor * UNITS**2))
    if method == "noisy_figures":
        return (float(largest),), (float(FIGURE_STEPS * factor),)
    if method == "noisy_sums":
        return (float(squared),), (float(before.public[1]),)
    return (float(largest),), (float(before.public[1]),)


# ------------------------------------------------------------------------------------------------ answers


def _shape_of(output: Any) -> Any:
    """What is public of an answer, kept apart from what the fit may do with it."""
    if isinstance(output, Ranges):
        return "ranges", output.first.copy(), output.stop.copy(), output.spikes.copy()
    if isinstance(output, Regions):
        return "regions", output.codes.copy(), output.depths.copy()
    return output.copy() if isinstance(output, np.ndarray) else output


def _answer(output: Any, true: Any) -> Any:
    """The same answer for another table: shapes as they were, with that table's counts in them."""
    if isinstance(output, tuple) and output[0] == "ranges":
        _, first, stop, spikes = (part if isinstance(part, str) else part.copy() for part in output)
        inside = [true.rows_below(part[1]) - true.rows_below(part[0]) for part in (np.stack([first, stop]), spikes)]
        return Ranges(first, stop, inside[0], spikes, inside[1])
    if isinstance(output, tuple) and output[0] == "regions":
        cells = _cells(true)
        n_inside = [
            sum(n for code, n in cells.items() if not depth or code[0] >> (64 - depth) == first >> (64 - depth))
            for first, depth in zip(output[1][:, 0].tolist(), output[2].tolist(), strict=True)
        ]
        return Regions(output[1].copy(), output[2].copy(), np.array(n_inside, dtype=np.int64))
    return output.copy() if isinstance(output, np.ndarray) else output


def held_in_file(model: Any) -> Any:
    """All that a release holds, as text and bytes."""
    entries, members = model.release_.to_members()
    return repr(model.card_.to_dict()), repr(entries), {name: bytes(member) for name, member in members.items()}
