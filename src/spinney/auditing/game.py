"""A game: many coins, each deciding which of two neighbouring tables the real mechanism gets, and what came of it.

Mechanisms draw from the operating system, as they do for a release, and so do the coins. What a game sees of an output
(`Seen`) is what a release would hold. `play` may put many coins into one call of a mechanism where the claim is pure,
since the bound then holds whatever the coins have to do with each other (`bounds`).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import Claim, Finding, Tally, coins_to_tell
from spinney.auditing.learned import learned_statistics
from spinney.auditing.rules import Rule, best_rule
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]

# Of all coins: to learn statistics, and to choose among them and their thresholds. The rest are guessed.
_LEARNED = 0.15
_CHOSEN = 0.15
# Coins of the rounds by which a game is timed.
_FIRST = 4
# A game has at least so many, however long they take.
_FEWEST = 24
# Whoever makes more coins than this holds more in memory than a bound gains by it.
MOST_COINS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Outcomes of coins: what was released of each, and the log-likelihood ratio where the plan tells the law."""

    outcomes: Floats  # (n, d)
    likelihood: Floats | None = None  # (n,)


class Game(ABC):
    """One mechanism, one pair of neighbours. Everything in it is made up or public.

    Attributes:
        family: what kind of mechanism it is, as `--family` names it.
        title: the neighbours, in a few words.
        path: which code is called for every coin: a mechanism, or a whole fit.
        unit: what neighbours differ in.
        claim: what the mechanism was charged for.
    """

    family: str
    path: str
    title: str
    unit: Unit
    claim: Claim
    weight: float = 1.0  # how much time it gets beside others

    @abstractmethod
    def play(self, coins: Coins) -> Seen:
        """Run the mechanism on one table where a coin is 0, and on its neighbour where it is 1."""

    is_packed: bool = False  # whether one call of a mechanism takes a whole batch of coins

    @property
    def batch(self) -> int:
        """How many coins one call of `play` should get."""
        return 256

    @property
    def name(self) -> str:
        return f"{self.family}: {self.title}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a game came to."""

    family: str
    title: str
    path: str
    unit: str
    finding: Finding
    n_coins: int
    tally: Tally
    direction: str
    seconds: float
    seconds_to_tell: float  # how long it would have to be played at least, to tell anything
    processor_seconds: float  # fewer than those on the clock where other work runs on the machine


def toss(n: int) -> Coins:
    """Fair coins, from the operating system."""
    words = SystemEntropy().words(-(-n // 32))
    return np.unpackbits(words.view(np.uint8))[:n].astype(np.bool_)


def run(
    game: Game, *, seconds: float, error: float, most_coins: int = MOST_COINS, most_seconds: float | None = None
) -> Verdict:
    """Play for about so long, and bound the claim from below, wrongly with probability `error` at most.

    A first short round, of which nothing is counted, has everything compiled and tells how long a coin takes. How many
    coins there are depends on the clock and on nothing that was seen.

    With `most_seconds`, a game that could tell nothing in its time is played until it can, if so many are enough. If
    they are not, it ends with the fewest coins: they may show that there is no noise, and others need the time more.
    """
    worked = time.process_time()
    n_first = min(game.batch, most_coins) if game.is_packed else min(game.batch, _FIRST)
    game.play(toss(n_first))
    begun = before = time.perf_counter()
    first = toss(n_first)
    parts: list[tuple[Coins, Seen]] = [(first, game.play(first))]
    for_one = (time.perf_counter() - before) / len(first)
    n_coins = len(first)
    n_needed = coins_to_tell(game.claim, error) / (1 - _LEARNED - _CHOSEN)
    if most_seconds is not None and seconds < n_needed * for_one:
        is_enough = n_needed * for_one <= most_seconds
        seconds = most_seconds
        most_coins = min(most_coins, math.ceil(n_needed) if is_enough else max(n_first, _FEWEST))
    while n_coins < most_coins:
        left = seconds - (time.perf_counter() - begun)
        if left < n_first * for_one and n_coins >= _FEWEST:
            break
        n_more = min(game.batch, most_coins - n_coins)
        if not game.is_packed:
            n_more = min(n_more, max(int(left / for_one), _FIRST))
        before = time.perf_counter()
        coins = toss(n_more)
        parts.append((coins, game.play(coins)))
        n_coins += n_more
        for_one = (time.perf_counter() - before) / n_more
    coins = np.concatenate([part for part, _ in parts])
    outcomes = np.concatenate([seen.outcomes for _, seen in parts])
    likelihoods = [seen.likelihood for _, seen in parts]
    known = None if likelihoods[0] is None else np.concatenate([part for part in likelihoods if part is not None])
    finding, tally, rule = judge(coins, Seen(outcomes, known), game.claim, error=error)
    return Verdict(
        family=game.family,
        title=game.title,
        path=game.path,
        unit=game.unit.value,
        finding=finding,
        n_coins=n_coins,
        tally=tally,
        direction=rule.direction,
        seconds=time.perf_counter() - begun,
        seconds_to_tell=n_needed * (time.perf_counter() - begun) / n_coins,
        processor_seconds=time.process_time() - worked,
    )


def judge(coins: Coins, seen: Seen, claim: Claim, *, error: float) -> tuple[Finding, Tally, Rule]:
    """Choose a statistic and a rule on some coins, and count the guesses of the others."""
    n = len(coins)
    first, second = int(n * _LEARNED), int(n * (_LEARNED + _CHOSEN))
    best: tuple[Rule, Floats] | None = None
    for statistic in _statistics(seen, coins, first):
        rule = best_rule(statistic[first:second], coins[first:second], claim, n_left=n - second, error=error)
        if best is None or rule.promise > best[0].promise:
            best = rule, statistic
    assert best is not None
    rule, statistic = best
    tally = rule.tally(statistic[second:], coins[second:])
    return claim.judged(tally, error), tally, rule


def _statistics(seen: Seen, coins: Coins, n_known: int) -> Iterator[Floats]:
    if seen.likelihood is not None:
        yield seen.likelihood
    if seen.outcomes.shape[1]:
        for statistic in learned_statistics(seen.outcomes[:n_known], coins[:n_known]):
            yield statistic(seen.outcomes)
