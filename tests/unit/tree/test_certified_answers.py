"""Certified answers of trees: how often they hold when a small release gets its noise anew, for the worst rows too."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.budget import Unit
from spinney.release.answers.question import Question
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.certify import Certifier, SimulatedNoise, counts, draw_noise, mean, share
from spinney.tree.release.moments import MomentsRelease
from spinney.tree.release.regions import LeafValues, bracket, leaf_values, leaves_of, parts_of, region_of
from support.handmade_leaves import card_by_hand, moments_by_hand, plan_by_hand

SQUARE = sp.Schema({"x": sp.Real(0, 4, bits=6), "y": sp.Real(0, 4, bits=6)})
TREE = ("00", "010", "0110", "0111", "100", "101", "110", "111")  # x first, then y, then x
RATE = Fraction(1, 2)
LEVEL = 0.9
N_TRIALS = 1500


def true_moments(rows: np.ndarray, schema: sp.Schema = SQUARE, rate: Fraction = RATE) -> NoisyMoments:
    """The tree's true steps for rows, as if they had been released without noise."""
    empty = moments_by_hand(schema, {prefix: [0.0] * (1 + len(schema)) for prefix in TREE}, rate=rate)
    leaves = leaves_of(empty)
    steps = np.zeros_like(empty.noisy_steps)
    cells = np.minimum(rows / 4 * 64, 63).astype(np.int64)
    for row in cells:
        inside = ((leaves.first <= row) & (row <= leaves.last)).all(axis=1)
        (leaf,) = np.flatnonzero(inside)
        steps[leaf, 0] += empty.quantum
        for axis in range(len(schema)):
            offset = leaves.offset(np.array([leaf]), axis, row[[axis]])[0]
            steps[leaf, 1 + axis] += round(offset * empty.quantum)
    return replace(empty, noisy_steps=steps)


class Trials:
    """Noise drawn again and again over the same true leaves; what intervals know of it is the same each time."""

    def __init__(self, rows: np.ndarray, *, n_rows: bool = True, seed: int = 1) -> None:
        self.rows = rows
        self.true = true_moments(rows)
        self.n_rows = len(rows) if n_rows else None
        self.leaves = leaves_of(self.true)
        drawn = draw_noise(self.leaves.is_measured, self.true, N_TRIALS, np.random.default_rng(seed))
        self.real = np.rint(drawn * self.true.quantum).astype(np.int64)

    def certifiers(self, *, weight: float = 1.0):
        """One certifier for every trial; `weight` spoils what it knows of the size of the noise."""
        noise = SimulatedNoise(replace(self.true, rate=self.true.rate / Fraction(weight)), self.leaves.is_measured)
        for trial in range(N_TRIALS):
            steps = self.true.noisy_steps + self.real[:, trial].reshape(self.true.noisy_steps.shape)
            yield Certifier(replace(self.true, noisy_steps=steps), noise, self.n_rows)

    def bracket(self, where: dict):
        return bracket(
            self.leaves, parts_of(self.leaves, region_of(where, SQUARE, self.true.lattice), SQUARE, self.true)
        )

    def truth(self, where: dict) -> int:
        return int(meets(self.rows, where).sum())

    def coverage(self, where: dict, *, weight: float = 1.0, narrow: float = 1.0) -> float:
        """How often the interval holds the true count."""
        found, truth = self.bracket(where), self.truth(where)
        hits = 0
        for certifier in self.certifiers(weight=weight):
            (ends,) = counts(certifier, [found], LEVEL)
            middle, reach = (ends.low + ends.high) / 2, narrow * (ends.high - ends.low) / 2
            hits += middle - reach <= truth <= middle + reach
        return hits / N_TRIALS


def meets(rows: np.ndarray, where: dict) -> np.ndarray:
    found = np.ones(len(rows), dtype=bool)
    for place, name in enumerate(SQUARE):
        if name in where:
            low, high = where[name]
            found &= (rows[:, place] >= (-np.inf if low is None else low)) & (
                rows[:, place] <= (np.inf if high is None else high)
            )
    return found


def spread(n: int = 400, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.minimum(rng.gamma(2.0, 0.7, (n, 2)), 3.99)


@pytest.fixture(scope="module")
def trials() -> Trials:
    return Trials(spread())


# Half of the square is whole leaves; ranges end where cells do, so nothing is cut.
BELOW_2 = float(np.nextafter(2.0, 0))
WHOLE = {"x": (0, BELOW_2)}
SE = (LEVEL * (1 - LEVEL) / N_TRIALS) ** 0.5


def test_regions_of_whole_leaves_hold_as_often_as_they_say(trials: Trials) -> None:
    """Nothing is cut, so the interval is as narrow as its promise: the level and hardly more (a count is whole)."""
    assert len(trials.bracket(WHOLE).upper.leaves) == trials.bracket(WHOLE).n_inside == 4
    coverage = trials.coverage(WHOLE)
    assert LEVEL - 3 * SE <= coverage <= LEVEL + 0.02 + 3 * SE
    assert trials.coverage(WHOLE, narrow=0.7) < LEVEL - 5 * SE


@pytest.mark.parametrize("weight", [1 / 64, 0.5])
def test_noise_that_is_taken_for_less_is_caught(trials: Trials, weight: float) -> None:
    """The same test fails where the noise is taken for next to none, or for half of what it is."""
    assert trials.coverage(WHOLE, weight=weight) < LEVEL - 5 * SE


def test_without_a_public_total_nothing_is_taken_from_the_noise() -> None:
    """With n private the interval holds as often as it says, and is wider than with it."""
    private, public = Trials(spread(), n_rows=False), Trials(spread())
    assert LEVEL - 3 * SE <= private.coverage(WHOLE) <= LEVEL + 0.02 + 3 * SE
    found = public.bracket(WHOLE)
    assert next(private.certifiers()).scale(found.lower) > 1.2 * next(public.certifiers()).scale(found.lower)


REGIONS = [
    {"x": (0.3, 2.9)},
    {"x": (0.3, 2.9), "y": (0.1, 1.7)},
    {"x": (1.99, 2.01)},
    {"x": (0.51, 0.52), "y": (1.31, None)},
    {"y": (3.99, None)},
    {"x": (None, 0.01), "y": (None, 0.01)},
]


@pytest.mark.parametrize("where", REGIONS, ids=str)
def test_regions_that_cut_leaves_hold_at_least_as_often(trials: Trials, where: dict) -> None:
    """Slivers thinner than a cell, corners, ranges across leaves and inside one: never below the level."""
    assert trials.coverage(where) >= LEVEL - 3 * SE


def test_rows_in_the_worst_places_do_not_break_the_promise() -> None:
    """All rows of cut leaves just inside the region, then just outside: each end holds, and is live at the worst."""
    where = {"x": (0, 1.5)}
    for at in (1.5, float(np.nextafter(1.5625, 4))):
        rows = spread()
        inside = rows[:, 0] < 2
        rows[inside, 0] = at
        worst = Trials(rows)
        coverage = worst.coverage(where)
        assert coverage >= LEVEL - 3 * SE
    assert worst.truth(where) == 0


def test_a_linear_bound_is_a_bound_for_every_place(trials: Trials) -> None:
    """lower(u) <= 1[in] <= upper(u) for every cell of every leaf, in all regions, by looking at each."""
    leaves = trials.leaves
    for where in [*REGIONS, WHOLE]:
        found = trials.bracket(where)
        region = region_of(where, SQUARE, trials.true.lattice)
        for row, leaf in enumerate(found.upper.leaves):
            cells = [np.arange(leaves.first[leaf, axis], leaves.last[leaf, axis] + 1) for axis in range(2)]
            offsets = [leaves.offset(np.full(len(c), leaf), axis, c) for axis, c in enumerate(cells)]
            # Two rows of each cell: at its beginning and just before its end.
            for edge in (0.0, 1 - 1e-9):
                inside = [
                    np.isin(
                        np.arange(len(c)), np.flatnonzero((v >= region[a].ranges[0][0]) & (v <= region[a].ranges[0][1]))
                    )
                    if a in region
                    else np.ones(len(c), dtype=bool)
                    for a, (c, v) in enumerate((c, (c + edge) / 16) for c in cells)
                ]
                is_in = np.logical_and.outer(inside[0], inside[1])
                for side, sign in ((found.lower, 1), (found.upper, -1)):
                    line = side.of_count[row] + np.add.outer(
                        side.of_sums[row, 0] * offsets[0], side.of_sums[row, 1] * offsets[1]
                    )
                    assert (sign * (is_in - line) >= -1e-9).all(), (where, leaf)
        outside = np.setdiff1d(np.arange(len(leaves)), found.upper.leaves)
        assert not meets_any(leaves, outside, where)


def meets_any(leaves, outside, where: dict) -> bool:
    for leaf in outside:
        corners = np.stack(
            np.meshgrid(*[np.arange(leaves.first[leaf, a], leaves.last[leaf, a] + 1) for a in range(2)]), -1
        )
        if meets((corners.reshape(-1, 2)) / 16, where).any():
            return True
    return False


def test_shares_and_means_hold_as_often_as_they_say(trials: Trials) -> None:
    """Of whole leaves the ratio and the mean hold at the level, at least; with half the noise they do not."""
    part, whole = trials.bracket({"x": (0, BELOW_2), "y": (0, BELOW_2)}), trials.bracket(WHOLE)
    rows = trials.rows[meets(trials.rows, WHOLE)]
    true_share = float((rows[:, 1] < 2).mean())
    values = leaf_values(trials.leaves, 1, trials.true.lattice.axes[1])
    lines = LeafValues(*(column[whole.upper.leaves] for column in values))
    for weight, is_honest in ((1.0, True), (0.4, False)):
        hits = np.zeros(2)
        for n_done, certifier in enumerate(trials.certifiers(weight=weight)):
            if n_done == 100:
                break
            ends = share(certifier, part, whole, LEVEL), mean(certifier, whole, lines, 1, LEVEL)
            hits += [
                found.low - 1e-9 <= truth <= found.high + 1e-9
                for found, truth in zip(ends, (true_share, rows[:, 1].mean()), strict=True)
            ]
        assert ((hits / 100 >= LEVEL - 3 * (0.09 / 100) ** 0.5) == is_honest).all(), (weight, hits / 100)


def test_all_cells_of_a_table_hold_at_once(trials: Trials) -> None:
    """Four quarters together hold at the level with simultaneous=True; intervals for each by itself do not."""
    quarters = [{"x": x, "y": y} for x in ((0, BELOW_2), (2, 4)) for y in ((0, BELOW_2), (2, 4))]
    found, truths = [trials.bracket(where) for where in quarters], [trials.truth(where) for where in quarters]
    hits = {True: 0, False: 0}
    for certifier in islice(trials.certifiers(), 500):
        for at_once in hits:
            ends = counts(certifier, found, LEVEL, simultaneous=at_once)
            hits[at_once] += all(one.low <= truth <= one.high for one, truth in zip(ends, truths, strict=True))
    assert hits[True] / 500 >= LEVEL - 3 * (0.09 / 500) ** 0.5
    assert hits[False] / 500 < LEVEL - 3 * (0.09 / 500) ** 0.5


def test_simulated_noise_has_the_law_of_the_mechanism() -> None:
    """Variances by axis and of the sup norm agree with the exact sampler's; a rate of 0.8 does not."""
    from spinney.privacy.noise.supnorm import sup_norm_noise

    true = true_moments(spread(), rate=Fraction(2))
    drawn = draw_noise(np.ones((50, 2), dtype=bool), true, 400, np.random.default_rng(3)).reshape(50, 3, 400)
    steps = np.rint(drawn * true.quantum).transpose(0, 2, 1).reshape(-1, 3)
    exact = sup_norm_noise(true.rate, 3).draw(20_000, sp.UnsafeSeededEntropy(5))
    wrong = sup_norm_noise(true.rate * Fraction(4, 5), 3).draw(20_000, sp.UnsafeSeededEntropy(5))
    for number in (lambda z: np.abs(z).max(axis=1).mean(), lambda z: (z[:, 0].astype(float) ** 2).mean()):
        assert abs(number(steps) / number(exact) - 1) < 0.04 < abs(number(steps) / number(wrong) - 1)


def test_what_is_called_certified_is_not_chosen_by_the_noise_that_it_is_about() -> None:
    """Near the number of rows at which a cut region begins to be certified, all noise gives the same choice."""
    question = Question("count", where={"x": (0, 1.3)})

    def is_certified(moments: NoisyMoments, assumed: int) -> bool:
        card = card_by_hand(SQUARE, plan_by_hand(4, Unit.ADD_REMOVE), {"leaves": 8}, n_rows=None, frame="numpy")
        answers = MomentsRelease(moments, replace(card, parameters={"assumed_rows": assumed}))._asked
        return answers._is_certified(question, answers._read(question)[0])

    trials = Trials(np.zeros((1, 2)))
    empty = replace(trials.true, noisy_steps=np.zeros_like(trials.true.noisy_steps))
    border = next((n for n in range(1, 400) if not is_certified(empty, n)), None)
    assert border is not None
    rows = true_moments(np.full((border, 2), 0.1))
    for assumed in (border // 2, 2 * border):
        chosen = {
            is_certified(replace(rows, noisy_steps=rows.noisy_steps + noise.reshape(rows.noisy_steps.shape)), assumed)
            for noise in trials.real.T[:60]
        }
        assert chosen == {assumed < border}


@pytest.mark.parametrize("where", [{"x": (0, 1.99)}, {"x": (0.1, 0.2)}], ids=["whole", "cut"])
@pytest.mark.parametrize("is_public", [True, False])
def test_luck_of_the_noise_is_not_taken_for_knowledge(where, is_public):
    """Where noise puts a count far below 0, its interval still has a width."""
    trials = Trials(np.full((400, 2), 3.9), n_rows=is_public)
    steps = trials.true.noisy_steps.copy()
    steps[:4, 0] -= 60 * trials.true.quantum
    noise = SimulatedNoise(trials.true, trials.leaves.is_measured)
    (ends,) = counts(
        Certifier(replace(trials.true, noisy_steps=steps), noise, trials.n_rows), [trials.bracket(where)], LEVEL
    )
    assert ends.low == 0
    assert 3 < ends.high < 60
