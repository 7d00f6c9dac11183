"""Games with power: sound mechanisms pass, those with 0.7 of the noise are flagged, and errors add up as stated."""

from __future__ import annotations

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from spinney.forest import prepaid
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import GaussianTables, GaussianVector, TreeShapes
from spinney.privacy.noise.gaussian import discrete_gaussian
from spinney.tree import kdtree, moments
from spinney.tree import ranges as ruled
from spinney.tree.bins import decay_for
from spinney_audit import audit as runner
from spinney_audit import game as rules
from spinney_audit.battery import FAMILIES, standard
from spinney_audit.forest_games import ChoiceGame, TableGame
from spinney_audit.game import (
    Game,
    PureClaim,
    Rule,
    Seen,
    coins_to_tell,
    curve_of,
    frequencies,
    judge,
    linear,
    run,
    toss,
)
from spinney_audit.tree_games import CellGame, ColumnTreeGame, EmptyCellGame, MomentsGame, paper_game, privtree_game
from spinney_audit.whole_games import ForestFitGame, PeopleFitGame
from support.audit_zoo import CAGED, ZOO, Caught, made

ADD, REPLACE = Unit.ADD_REMOVE, Unit.REPLACE_ONE
SHARPER = Fraction(10, 7)  # of a rate: 0.7 of the noise
LONG = 600.0  # seconds that no game here takes: numbers of coins end them, so that slow machines see the same


def less_noise(module):
    sound = module.add_noise
    return mock.patch.object(module, "add_noise", lambda counts, rate, entropy: sound(counts, rate * SHARPER, entropy))


def sharper_choice():
    sound = prepaid.choose
    return mock.patch.object(prepaid, "choose", lambda scores, rate, entropy: sound(scores, rate * SHARPER, entropy))


def sharper_tables():
    return mock.patch.object(prepaid, "discrete_gaussian", lambda variance: discrete_gaussian(variance / SHARPER**2))


def sharper_moments():
    sound = moments.sup_norm_noise
    return mock.patch.object(moments, "sup_norm_noise", lambda rate, n: sound(rate * SHARPER, n))


SHAPES = TreeShapes(Fraction(2, 5), decay_for(Fraction(2, 5)), 14, 1, note="", stage="trees")
TABLES = {unit: GaussianTables(4 * Fraction(unit.factor), 1, note="", stage="one-way") for unit in (ADD, REPLACE)}
# How near a sound mechanism's bound must come to its claim with so many coins, and where noise is taken away.
GAMES = {
    "counts": (lambda unit: CellGame(unit, Fraction(1)), 400_000, 0.9, lambda: less_noise(kdtree)),
    "empty cells": (lambda unit: EmptyCellGame(unit, Fraction(1)), 60_000, 0.8, None),
    "privtree": (lambda unit: privtree_game(unit, Fraction(1)), 150_000, 0.6, lambda: less_noise(kdtree)),
    "paper": (lambda unit: paper_game(unit, Fraction(1)), 120_000, 0.8, lambda: less_noise(kdtree)),
    "moments": (lambda unit: MomentsGame(unit, Fraction(1)), 60_000, 0.7, sharper_moments),
    "column trees": (lambda unit: ColumnTreeGame(SHAPES, unit), 120_000, 0.4, lambda: less_noise(ruled)),
    "tables": (lambda unit: TableGame(TABLES[unit], unit), 200_000, 0.85, sharper_tables),
    "selections": (lambda unit: ChoiceGame(Fraction(2), unit), 25_000, 0.4, sharper_choice),
}


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=str)
@pytest.mark.parametrize("name", GAMES)
def test_sound_mechanisms_pass_and_come_near_their_claims(name, unit):
    """The bound is below the claim, and not far below."""
    make, n_coins, least, _ = GAMES[name]
    finding = run(make(unit), seconds=LONG, error=1e-6, most_coins=n_coins).finding
    assert not finding.exceeds
    assert finding.bound > least * finding.claim


@pytest.mark.parametrize("name", [name for name, (*_, weaken) in GAMES.items() if weaken is not None])
def test_seven_tenths_of_the_noise_are_flagged(name):
    """The same games, where the mechanism draws 0.7 of the noise that it was charged for."""
    make, n_coins, _, weaken = GAMES[name]
    game = make(ADD)
    with weaken():
        assert run(game, seconds=LONG, error=1e-3, most_coins=n_coins).finding.exceeds


class ExactGame(Game):
    """Laplace counts whose law is known to the last digit, at a claim of one's choosing."""

    family, path, title, unit = "counts", "none", "made up", ADD

    def __init__(self, claim, *, epsilon=1.0, seed=0):
        self.claim, self._epsilon, self._rng = claim, epsilon, np.random.default_rng(seed)

    def play(self, coins):
        a = 1 - np.exp(-self._epsilon)
        noise = self._rng.geometric(a, len(coins)) - self._rng.geometric(a, len(coins))
        return Seen((noise + coins)[:, None].astype(float))


def same_coins(seed=0):
    """Tosses that are the same in every run: only the mechanisms' own noise is left to chance."""
    rng = np.random.default_rng(seed)
    return lambda n: rng.random(n) < 0.5


def test_errors_are_made_as_seldom_as_stated():
    """Of audits of a law whose epsilon is exactly the claim, at most the stated share exceed it, learning included."""
    n_audits, error = 250, 0.1
    game, n_wrong, coins_of = ExactGame(PureClaim(1.0)), 0, same_coins()
    for _ in range(n_audits):
        coins = coins_of(600)
        finding, _, _ = judge(coins, game.play(coins), game.claim, error=error)
        n_wrong += finding.exceeds
    assert n_wrong <= n_audits * error + 3 * np.sqrt(n_audits * error)


def test_a_family_of_games_is_wrong_as_seldom_as_one():
    """Ten games of a tenth of the error each: at least one exceeds its claim in no more than the stated share."""
    n_audits, n_wrong, coins_of = 40, 0, same_coins()
    gaussian = np.random.default_rng(1)
    curve = curve_of([GaussianVector(Fraction(1), note="", stage="products")], ADD)
    for seed in range(n_audits):
        any_wrong = False
        for place in range(10):
            coins = coins_of(400)
            if place % 2:
                seen, claim = ExactGame(PureClaim(1.0), seed=100 * seed + place).play(coins), PureClaim(1.0)
            else:
                seen, claim = Seen((gaussian.normal(size=400) + coins)[:, None]), curve
            any_wrong |= judge(coins, seen, claim, error=0.1 / 10)[0].exceeds
        n_wrong += any_wrong
    assert n_wrong <= 0.1 * n_audits + 3 * np.sqrt(0.1 * n_audits)


GAUSSIAN = curve_of([GaussianVector(Fraction(1, 16), note="", stage="products")], ADD)  # mu a quarter


class NormalGame(Game):
    """Numbers with normal noise, a stated distance apart."""

    family, path, title, unit, claim = "vectors", "none", "made up", ADD, GAUSSIAN

    def __init__(self, mu, *, seed=0):
        self._mu, self._rng = mu, np.random.default_rng(seed)

    def play(self, coins):
        return Seen((self._rng.normal(size=len(coins)) + self._mu * coins)[:, None])


@pytest.mark.parametrize("make", [lambda leak: ExactGame(PureClaim(0.5), epsilon=leak), NormalGame], ids=["pure", "mu"])
def test_what_a_game_could_have_missed_is_what_it_misses(make):
    """With the coins of a sound game: the leak that it names is found in about 95 % of games, half of it in few."""
    claim, n_coins, n_games, error, coins_of = make(0.1).claim, 900, 60, 0.05, same_coins()
    coins = coins_of(n_coins)
    sound, _, _ = judge(coins, make(0.25).play(coins), claim, error=error)
    assert sound.claim < sound.could_miss < 4 * sound.claim
    found = {}
    for share in (1.0, 0.5):
        game, found[share] = make(share * sound.could_miss), 0
        for _ in range(n_games):
            coins = coins_of(n_coins)
            found[share] += judge(coins, game.play(coins), claim, error=error)[0].exceeds
    assert found[1.0] >= n_games * 0.9
    assert found[0.5] <= n_games * 0.5


def test_a_game_without_enough_coins_could_not_have_failed():
    """Without any noise, so that every guess is right, its bound would still be below the claim."""
    coins = np.arange(40) % 2 == 1  # as many of each, so that what is proved does not depend on chance
    finding, _, _ = judge(coins, Seen(coins[:, None].astype(float)), PureClaim(4.0), error=0.01)
    assert not finding.could_exceed
    assert not finding.tells
    assert finding.could_miss == np.inf
    assert judge(coins, Seen(coins[:, None].astype(float)), PureClaim(0.5), error=0.01)[0].exceeds


class SlowGame(NormalGame):
    """A game whose coins take a second each, by a clock of its own: how busy the machine is does not matter."""

    def __init__(self):
        super().__init__(0.25)
        self.now = 0.0

    def play(self, coins):
        self.now += len(coins)
        return super().play(coins)

    def perf_counter(self):
        return self.now

    process_time = perf_counter


def test_time_goes_to_games_that_can_tell_something():
    """One that could tell nothing in the time that there is ends early, and one that needs more of it has that."""

    def played(most_seconds):
        game = SlowGame()
        with mock.patch.object(rules, "time", game), mock.patch.object(rules, "toss", same_coins()):
            return run(game, seconds=10, error=0.01, most_seconds=most_seconds)

    short = played(20)
    assert short.n_coins == short.seconds == 24
    assert not short.finding.tells
    needed = short.seconds_to_tell
    assert needed == pytest.approx(coins_to_tell(GAUSSIAN, 0.01) / 0.7)
    assert played(0.99 * needed).n_coins == 24
    longer = played(1.01 * needed)
    assert needed <= longer.n_coins < needed + 1
    assert longer.finding.tells


def test_coins_are_fair_and_fresh():
    """No two calls agree, and ones are half of all."""
    first, second = toss(10_000), toss(10_000)
    assert 4_700 < first.sum() < 5_300
    assert 4_700 < (first == second).sum() < 5_300


def test_linear_statistics_see_noise_that_is_shared():
    """Two numbers with the same noise: their difference tells everything, and neither does alone."""
    rng = np.random.default_rng(2)
    coins = rng.random(4_000) < 0.5
    noise = rng.normal(0, 50, 4_000)
    seen = np.column_stack([noise, noise + coins])
    statistic = linear(seen[:1_000], coins[:1_000])(seen[1_000:])
    assert (statistic[coins[1_000:]].min()) > statistic[~coins[1_000:]].max()


def test_frequencies_find_outcomes_that_one_table_cannot_have():
    """An outcome that comes with one of the tables only, seldom, is told from all others."""
    rng = np.random.default_rng(3)
    coins = rng.random(6_000) < 0.5
    seen = rng.integers(0, 5, (6_000, 2)).astype(float)
    seen[coins & (rng.random(6_000) < 0.05)] = [9, 9]
    statistic = frequencies(seen[:3_000], coins[:3_000])(seen)
    is_rare = seen[:, 0] == 9
    assert statistic[is_rare].min() > statistic[~is_rare].max()


# --------------------------------------------------------------------------------------------------------------- zoo


def test_no_sabotage_of_the_other_zoos_is_forgotten():
    """Every sabotage has a game that is to catch it, or a reason why none can."""
    for zoo, cages in CAGED.items():
        assert set(ZOO[zoo]) == set(cages), zoo


# Coins that take about a second each; `python -m benchmarks.audit_zoo` has all of them.
QUICK = [
    ("trees", "half noise on leaf counts", 40_000),
    ("trees", "half noise on decisions, privtree", 40_000),
    ("trees", "empty nodes never split", 40_000),
    ("trees", "empty nodes never released", 40_000),
    ("trees", "privtree without depth", 40_000),
    ("trees", "threshold before noise", 40_000),
    ("trees", "same words in every release", 600),
    ("trees", "charge for counts only", 40_000),
    ("leaf moments", "noise only on leaves with rows", 40_000),
    ("leaf moments", "unmeasured axis forgotten", 300),
    ("forests", "half the sensitivity", 15_000),
    ("forests", "class sizes for nothing", 600),
    ("vectors", "one draw for all sums", 500),
    ("vectors", "half the noise of sums", 1_500),
    ("others", "half noise on the number of rows", 2_000),
    ("others", "half noise on figures of utility", 3_000),
    ("others", "rows of persons that are not weighted", 800),
    ("others", "a box read off the rows", 200),
]


@pytest.mark.parametrize(("zoo", "name", "n_coins"), QUICK, ids=[name for _, name, _ in QUICK])
def test_sabotage_is_caught(zoo, name, n_coins):
    """The lower bound exceeds the claim of a sabotaged mechanism."""
    entry = ZOO[zoo][name]
    assert isinstance(entry, Caught)
    game, sabotage = made(entry)
    with sabotage:
        verdict = run(game, seconds=LONG, error=1e-3, most_coins=n_coins)
    assert verdict.finding.exceeds


@pytest.mark.parametrize("black_box", [False, True], ids=["noisy numbers", "drawn rows"])
@pytest.mark.parametrize(
    ("make", "n_coins", "least"),
    [
        (lambda black_box: ForestFitGame(ADD, "10", "1e-6", black_box=black_box), 160, 1.2),
        (lambda black_box: PeopleFitGame(Unit.ADD_REMOVE_PERSON, "14", "1e-6", black_box=black_box), 24, 0.6),
    ],
    ids=["forest", "persons"],
)
def test_whole_fits_are_told_apart_by_all_that_they_count(make, n_coins, least, black_box):
    """The sum of what all tables say lies apart by so many standard deviations; by no more than is charged for."""
    game = make(black_box)
    coins = np.arange(n_coins) % 2 == 1
    ratios = game.play(coins).likelihood
    spread = np.sqrt((ratios[coins].var() + ratios[~coins].var()) / 2)
    apart = (ratios[coins].mean() - ratios[~coins].mean()) / spread
    slack = 5 * np.sqrt(4 / n_coins)
    assert least < apart < game.claim.mu_of_best_guess + slack


def test_guesses_of_all_coins_prove_more_than_two_rates():
    """Of a normal law at its own claim: never above it, and nearer than bounds of both kinds of errors come."""
    rng, curve = np.random.default_rng(4), curve_of([GaussianVector(Fraction(4), note="", stage="products")], ADD)
    coins = rng.random(2_000) < 0.5
    seen = rng.normal(size=2_000) + 2 * coins
    guessed = Rule(1.0, np.nextafter(1.0, -np.inf), 0.0).tally(seen, coins)
    rates = Rule(1.0, -np.inf, 0.0).tally(seen, coins)
    assert curve.mu_of_best_guess == pytest.approx(2.0, rel=3e-3)
    all_coins, two_rates = (curve.judged(tally, 1e-3) for tally in (guessed, rates))
    assert two_rates.bound < all_coins.bound < 2.0
    assert all_coins.bound > 1.7


def test_games_that_take_long_have_more_of_the_error():
    """Parts of the error probability are those of the time, and add up to it."""
    specs = [spec for spec in standard(["counts", "private bounds"]) if spec.unit == "add-remove"]
    errors = []
    sound = mock.Mock(**{"finding.exceeds": False})
    with mock.patch.object(runner, "run", lambda game, *, error, **_: errors.append((game.name, error)) or sound):
        runner.play_all(specs, seconds=1, workers=1)
    parts = dict(errors)
    assert len(parts) == len(specs)
    assert sum(parts.values()) == pytest.approx(runner.ERROR)
    assert max(parts, key=parts.get).startswith("private bounds")


def test_a_game_that_is_won_is_played_again():
    """The second verdict counts, of as many coins, whatever the first was; a game that is not won is played once."""
    (spec, *_) = standard(["counts"])
    won, lost = (mock.Mock(**{"finding.exceeds": exceeds, "n_coins": 50}) for exceeds in (True, False))
    for played, counts in (([won, lost], lost), ([won, won], won), ([lost], lost)):
        with mock.patch.object(runner, "run", side_effect=played) as run_once:
            assert list(runner.play_in_turn([spec], 1, [0.05])) == [counts]
        assert run_once.call_count == len(played)
        assert all(call.kwargs["most_coins"] == 50 for call in run_once.call_args_list[1:])


def test_every_game_of_the_battery_can_be_made_and_played():
    """One short round of each kind, in the families that there are."""
    specs = standard(FAMILIES)
    assert {spec.family for spec in specs} == set(FAMILIES)
    quick = {spec.maker: spec for spec in specs if spec.maker not in ("people fit", "products", "forest fit")}
    for spec in quick.values():
        game = spec.make()
        coins = toss(4)
        seen = game.play(coins)
        assert len(seen.outcomes) == 4, spec
        assert game.family == spec.family, spec
        assert seen.likelihood is None or seen.likelihood.shape == (4,)
