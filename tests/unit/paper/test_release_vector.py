"""A vector with Gaussian noise: checked, charged, branded, and only then touched; and a zoo of sabotaged twins."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy import stats

import spinney as sp
from spinney.errors import BudgetError, ParameterError
from spinney.privacy.entropy import SystemEntropy, UnsafeSeededEntropy
from spinney.privacy.mechanisms import DiscreteGaussianVector, UnsafeEntropy
from spinney.privacy.noise.gaussian import DiscreteGaussian
from spinney_paper.baselines import vector
from spinney_paper.baselines.vector import classical_variance, least_variance, release_vector
from support.goodness_of_fit import ACCEPT, REJECT

MILLIONTH = Fraction(1, 10**6)
ONE = Fraction(1)
# A small variance, so that half of it, or noise rounded from floats, is another law on the whole numbers.
CLAIM = {"sensitivity_squared": Fraction(1, 25), "variance": Fraction(9, 10), "epsilon": ONE, "delta": MILLIONTH}

Mechanism = Callable[..., np.ndarray]


def released(sums: np.ndarray, mechanism: Mechanism = release_vector, **changes) -> np.ndarray:
    arguments = CLAIM | {"ledger": sp.Ledger(), "entropy": UnsafeSeededEntropy(1), "what": "sums"} | changes
    return mechanism(sums, **arguments)


def test_the_charge_says_what_was_done():
    """The event holds epsilon, delta, sensitivity, variance and the note; a seeded source brands the ledger."""
    ledger = sp.Ledger(limit=1, delta="1e-6")
    noisy = released(np.arange(12).reshape(3, 4), ledger=ledger, entropy=SystemEntropy(), what="landmarks")
    assert noisy.shape == (3, 4)
    assert noisy.dtype == np.int64
    assert ledger.events == (DiscreteGaussianVector(ONE, MILLIONTH, Fraction(1, 25), Fraction(9, 10), "landmarks"),)
    released(np.arange(3), ledger=(seeded := sp.Ledger()))
    assert seeded.events[1] == UnsafeEntropy(note="sums: noise from a seeded generator")


def test_the_textbook_variance_is_accepted_up_to_epsilon_one():
    """Balog et al.'s noise passes the check at delta = 1e-6."""
    for epsilon in (Fraction(1, 100), Fraction(1, 10), ONE):
        variance = classical_variance(epsilon, MILLIONTH, Fraction(4))
        released(np.zeros(3, np.int64), sensitivity_squared=Fraction(4), variance=variance, epsilon=epsilon)


def test_too_little_noise_is_refused_with_the_remedy():
    """The variance named in the message is accepted, a thousandth less is not, and a refusal costs nothing."""
    least = least_variance(ONE, MILLIONTH, Fraction(4))
    claim = {"sensitivity_squared": Fraction(4), "ledger": (ledger := sp.Ledger())}
    message = r"variance=.* is too small for epsilon=1, delta=0.000001; take at least 82\.1"
    with pytest.raises(BudgetError, match=message) as caught:
        released(np.zeros(3, np.int64), variance=least * Fraction(999, 1000), **claim)
    assert ledger.events == ()
    released(np.zeros(3, np.int64), variance=Fraction(str(caught.value).rpartition(" ")[2]), **claim)
    assert ledger.spent_delta == MILLIONTH


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": Fraction(0)}, "epsilon="),
        ({"delta": Fraction(0)}, "delta="),
        ({"delta": Fraction(1)}, "delta="),
        ({"sensitivity_squared": Fraction(0)}, "sensitivity_squared="),
        ({"variance": Fraction(2**99)}, "variance="),
    ],
)
def test_claims_that_are_none_cost_nothing(changes, message):
    """Arguments out of range are named before anything is charged."""
    ledger = sp.Ledger()
    with pytest.raises(ParameterError, match=message):
        released(np.zeros(3, np.int64), ledger=ledger, **changes)
    assert ledger.events == ()


def test_floats_are_refused_without_showing_them():
    """Noise is added to whole numbers only, and the message keeps the numbers to itself."""
    with pytest.raises(ParameterError, match="float64") as caught:
        released(np.array([1234.5]))
    assert "1234" not in str(caught.value)


def test_a_pure_account_refuses_gaussian_noise():
    """Delta beyond the account's is refused before the noise, with nothing recorded."""
    ledger = sp.Ledger(limit=10)
    with pytest.raises(BudgetError, match="delta=1e-06 does not fit: the ledger is pure"):
        released(np.zeros(3, np.int64), ledger=ledger)
    assert ledger.events == ()


def test_extreme_sums_do_not_wrap_around():
    """Sums at the end of the range stay at their end: what overflowed would jump to the other."""
    ends = np.array([2**63 - 1, -(2**63)])
    noisy = released(ends, sensitivity_squared=ONE, variance=Fraction(2**98))
    assert noisy[0] > 2**60
    assert noisy[1] < -(2**60)


# ------------------------------------------------------------------------------------------------ zoo


class WatchedSums(np.ndarray):
    """Sums that note how much delta had been charged whenever a computation used them."""

    ledger: sp.Ledger
    charged_at_touch: list[Fraction]

    def __array_ufunc__(self, function, method, *inputs, **options):
        self.charged_at_touch.append(self.ledger.spent_delta)
        plain = [np.asarray(x) if isinstance(x, WatchedSums) else x for x in inputs]
        options.pop("out", None)
        return getattr(function, method)(*plain, **options)

    def __array_finalize__(self, source) -> None:
        if isinstance(source, WatchedSums):
            self.ledger, self.charged_at_touch = source.ledger, source.charged_at_touch


def charge_before_touch(mechanism: Mechanism) -> float:
    """Every computation with the sums comes after the charge; where the charge is refused, none comes."""
    outcomes = []
    for ledger in (sp.Ledger(limit=1, delta="1e-6"), sp.Ledger(limit=1)):
        sums = np.arange(5).view(WatchedSums)
        sums.ledger, sums.charged_at_touch = ledger, []
        try:
            released(sums, mechanism, ledger=ledger)
        except BudgetError:
            outcomes.append(not sums.charged_at_touch)
        else:
            touched = sums.charged_at_touch
            outcomes.append(bool(touched) and all(spent == MILLIONTH for spent in touched))
    return float(all(outcomes))


def law(mechanism: Mechanism) -> float:
    """What is added follows the discrete Gaussian law of the claimed variance."""
    sums = np.arange(100_000) % 7 * 1000
    noise = released(sums, mechanism) - sums
    k = np.arange(-4, 5)
    weights = np.exp(-(k**2) / (2 * float(CLAIM["variance"])))
    expected = weights / weights.sum() * len(noise)
    seen = np.array([(noise == value).sum() for value in k])
    return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue) if seen.sum() > 99_900 else 0.0


def fresh_noise(mechanism: Mechanism) -> float:
    """The noise of two releases is unrelated."""
    entropy, zeros = UnsafeSeededEntropy(5), np.zeros(2000, np.int64)
    return float(stats.spearmanr(*(released(zeros, mechanism, entropy=entropy) for _ in range(2))).pvalue)


def half_variance(sums, **claim) -> np.ndarray:
    narrow = DiscreteGaussian(claim["variance"] / 2)
    with mock.patch.object(vector, "discrete_gaussian", return_value=narrow):
        return release_vector(sums, **claim)


def rounded_normal(sums, **claim) -> np.ndarray:
    """The usual float sampler, rounded."""
    sigma = float(claim["variance"]) ** 0.5
    noise = mock.Mock(draw=lambda n, entropy: np.rint(np.random.default_rng(6).normal(scale=sigma, size=n)).astype(int))
    with mock.patch.object(vector, "discrete_gaussian", return_value=noise):
        return release_vector(sums, **claim)


def noise_on_some(sums, **claim) -> np.ndarray:
    """Sums that are zero get no noise."""
    return np.where(sums == 0, 0, release_vector(sums, **claim))


def one_noise_for_all(sums, **claim) -> np.ndarray:
    """Every coordinate gets the same draw."""
    return sums + (release_vector(sums, **claim) - sums)[0]


def seed_of_its_own(sums, **claim) -> np.ndarray:
    return release_vector(sums, **claim | {"entropy": UnsafeSeededEntropy(0)})


def checks_before_paying(sums, **claim) -> np.ndarray:
    """A glance at the sums, and then the charge."""
    if np.abs(sums).max() > 2**60:
        raise ValueError
    return release_vector(sums, **claim)


def pays_afterwards(sums, **claim) -> np.ndarray:
    noisy = release_vector(sums, **claim | {"ledger": sp.Ledger()})
    release_vector(np.zeros(1, np.int64), **claim)
    return noisy


def forgets_delta(sums, **claim) -> np.ndarray:
    with mock.patch.object(vector, "DiscreteGaussianVector", lambda e, d, *rest, note: _pure(e, note)):
        return release_vector(sums, **claim)


def _pure(epsilon: Fraction, note: str) -> DiscreteGaussianVector:
    return DiscreteGaussianVector(epsilon, Fraction(0), ONE, ONE, note)


CAGES: dict[str, tuple[Callable[[Mechanism], float], Mechanism]] = {
    "half the variance": (law, half_variance),
    "a rounded normal": (law, rounded_normal),
    "no noise on zeros": (law, noise_on_some),
    "one draw for all": (law, one_noise_for_all),
    "a seed of its own": (fresh_noise, seed_of_its_own),
    "a glance before the charge": (charge_before_touch, checks_before_paying),
    "released, then paid": (charge_before_touch, pays_afterwards),
    "delta forgotten": (charge_before_touch, forgets_delta),
}


@pytest.mark.parametrize(("check", "sabotaged"), CAGES.values(), ids=CAGES)
def test_sabotage_is_caught(check: Callable[[Mechanism], float], sabotaged: Mechanism) -> None:
    """The check accepts `release_vector` and rejects the same mechanism with one mistake in it."""
    assert check(release_vector) > ACCEPT
    assert check(sabotaged) < REJECT
