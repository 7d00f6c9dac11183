"""Kernel metrics meet their slow twins, on any set, weight, scale and bandwidth."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spinney.errors import InputError, MissingExtraError, ParameterError
from spinney_paper import kernels
from spinney_paper.kernels import sums as direct
from spinney_paper.kernels import sums as fourier
from spinney_paper.kernels import sums as gpu
from spinney_paper.kernels.sums import WeightedSet
from support import slow_metrics as twins
from support.in_one_test import in_one_test


@st.composite
def sets(draw, n_sets=2, most=8):
    """A few small sets in the same space."""
    n_axes = draw(st.integers(1, 6))
    value = st.floats(-5, 5, allow_subnormal=False)
    return [draw(arrays(float, (draw(st.integers(1, most)), n_axes), elements=value)) for _ in range(n_sets)]


def shares(n: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).random(n)
    return weights / weights.sum()


@settings(deadline=None, max_examples=60)
@given(sets(), st.floats(1e-3, 1e3))
def test_small_sets_agree_with_the_double_sum(pair, gamma):
    """kappa, MMD and the density of small sets are the paper's formulas, term by term, weighted and not."""
    p, q = pair
    w, v = shares(len(p)), shares(len(q), 1)
    assert kernels.kernel_metric(p, q, gamma=gamma) == pytest.approx(twins.kappa(p, q, gamma), abs=1e-14)
    assert kernels.kernel_metric(p, p, gamma=gamma) == pytest.approx(twins.kappa(p, p, gamma), abs=1e-14)
    weighted = kernels.kernel_metric(p, q, first_weights=w, second_weights=v, gamma=gamma)
    assert weighted == pytest.approx(twins.kappa(p, q, gamma, w, v), abs=1e-14)
    squared = kernels.mmd(p, q, real_weights=w, synthetic_weights=v, gamma=gamma) ** 2
    assert squared == pytest.approx(max(0.0, twins.mmd_squared(p, q, gamma, w, v)), abs=1e-14)
    density = kernels.kernel_density(p, q, weights=w, gamma=gamma)
    assert density == pytest.approx([twins.kappa([x], p, gamma, None, w) for x in q], abs=1e-14)


@settings(deadline=None, max_examples=60)
@given(sets(n_sets=3), st.floats(1e-2, 1e2))
def test_mmd_is_a_distance(three, bandwidth):
    """Symmetric, 0 on the same set, at most sqrt 2, and no detour is shorter."""
    p, q, r = three

    def apart(a, b):
        return kernels.mmd(a, b, bandwidth=bandwidth)

    assert apart(p, q) == pytest.approx(apart(q, p), abs=1e-7)
    assert apart(p, p) == pytest.approx(0, abs=1e-7)
    assert 0 <= apart(p, q) <= math.sqrt(2) + 1e-12
    assert apart(p, r) <= apart(p, q) + apart(q, r) + 1e-7


@pytest.mark.parametrize("n_axes", [1, 2, 3, 5, 8, 33])
def test_blocks_agree_with_the_matrix(n_axes):
    """Sets of several blocks, of sizes that do not divide evenly, give the sum of the whole matrix."""
    rng = np.random.default_rng(n_axes)
    p, q = rng.normal(size=(1301, n_axes)), rng.normal(1, 1, size=(777, n_axes))
    gamma = 0.7 / n_axes
    w, v = rng.normal(size=1301), rng.normal(size=777)
    matrix = np.exp(-gamma * ((p[:, None] - q[None]) ** 2).sum(axis=2))
    own = np.exp(-gamma * ((p[:, None] - p[None]) ** 2).sum(axis=2))
    one, two = WeightedSet(p, w), WeightedSet(q, v)
    assert direct.direct_inner_sum(one, two, gamma) == pytest.approx(w @ matrix @ v, rel=1e-11, abs=1e-11)
    assert direct.direct_square_sum(one, gamma) == pytest.approx(w @ own @ w, rel=1e-11)
    assert direct.direct_density_sums(one, q, gamma) == pytest.approx(w @ matrix, abs=1e-11)


def test_far_from_the_origin_nothing_is_lost():
    """Moving both sets by a whole number of any size leaves every digit: differences come first."""
    rng = np.random.default_rng(0)
    p, q = np.round(rng.normal(size=(600, 4)), 3), np.round(rng.normal(size=(600, 4)), 3)
    p, q = np.round(p * 1024) / 1024, np.round(q * 1024) / 1024
    far = 2.0**40
    assert kernels.mmd(p + far, q + far, bandwidth=1) == kernels.mmd(p, q, bandwidth=1)


def test_invariances():
    """Turning, scaling with the bandwidth, repeating rows and reordering them change nothing."""
    rng = np.random.default_rng(1)
    p, q = rng.normal(size=(300, 3)), rng.normal(0.3, 1, size=(200, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    apart = kernels.mmd(p, q, bandwidth=0.8)
    assert kernels.mmd(p @ turn, q @ turn, bandwidth=0.8) == pytest.approx(apart, abs=1e-10)
    assert kernels.mmd(8 * p, 8 * q, bandwidth=6.4) == pytest.approx(apart, abs=1e-10)
    assert kernels.mmd(np.repeat(p, 3, axis=0), q[::-1], bandwidth=0.8) == pytest.approx(apart, abs=1e-10)
    doubled = np.r_[np.full(100, 2 / 400), np.full(200, 1 / 400)]
    whole = np.concatenate([p[:100], p])
    by_weight = kernels.mmd(p, q, real_weights=doubled, bandwidth=0.8)
    assert kernels.mmd(whole, q, bandwidth=0.8) == pytest.approx(by_weight, abs=1e-10)
    assert kernels.mmd(p, q, gamma=1 / (2 * 0.8**2)) == pytest.approx(apart, abs=1e-12)


def test_a_known_kappa_saves_the_sum():
    """With kappa(real, real) at hand, the result is the same."""
    rng = np.random.default_rng(2)
    p, q = rng.normal(size=(700, 4)), rng.normal(0.3, 1, size=(500, 4))
    known = kernels.kernel_metric(p, p, bandwidth=1)
    assert kernels.mmd(p, q, bandwidth=1, kappa_real=known) == pytest.approx(kernels.mmd(p, q, bandwidth=1), abs=1e-12)
    with pytest.raises(ParameterError, match="kappa_real=nan"):
        kernels.mmd(p, q, bandwidth=1, kappa_real=float("nan"))


def test_signed_weights():
    """The RKHS distance takes weights of any sign and sum, as Balog et al. publish them; MMD does not."""
    p, q, v = [[0.0], [1.0]], [[0.5], [2.0]], np.array([1.5, -0.25])
    expected = math.sqrt(twins.mmd_squared(p, q, 0.5, None, v))
    assert kernels.rkhs_distance(p, q, synthetic_weights=v, gamma=0.5) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match="synthetic_weights holds a negative weight"):
        kernels.mmd(p, q, synthetic_weights=v, gamma=0.5)


# ------------------------------------------------------------------------------------------------ Fourier space


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 3),
    st.floats(-6, 6),
    st.floats(-8, 8),
    st.floats(-1.5, 4),
    st.integers(0, 2**31),
)
def test_fourier_agrees_with_direct(n_axes, log_scale, shift, log_bandwidth, seed):
    """Both ways agree to far better than 1e-9 on any scale, wherever frequencies are not too many; MMD, too."""
    rng = np.random.default_rng(seed)
    scale = 10.0**log_scale
    p, q = (scale * (shift + rng.normal(size=(n, n_axes)) * rng.random(n_axes)) for n in (60, 90))
    options = {"bandwidth": scale * 10**log_bandwidth}
    gamma = 1 / (2 * options["bandwidth"] ** 2)
    if fourier.plan([p, q], gamma) is None:
        with pytest.raises(ParameterError, match="method='fourier'"):
            kernels.kernel_metric(p, q, method="fourier", **options)
        return
    w = shares(60)
    for compared in (kernels.kernel_metric, kernels.mmd_squared_unbiased):
        fast, slow = (compared(p, q, method=method, **options) for method in ("fourier", "direct"))
        assert fast == pytest.approx(slow, abs=1e-11)
    fast, slow = (kernels.mmd(p, q, real_weights=w, method=method, **options) for method in ("fourier", "direct"))
    assert fast**2 == pytest.approx(slow**2, abs=1e-11)
    fast, slow = (kernels.kernel_density(p, q, weights=w, method=method, **options) for method in ("fourier", "direct"))
    assert fast == pytest.approx(slow, abs=1e-11)


@in_one_test("n_axes", [1, 2, 3])
@in_one_test("bandwidth", [1e-9, 1e-3, 0.05, 1, 30, 1e9])
def test_automatic_choice_agrees_with_direct(n_axes, bandwidth):
    """Large sets take the fast way by themselves, and tiny and huge bandwidths lose nothing."""
    rng = np.random.default_rng(n_axes)
    p, q = rng.normal(size=(4000, n_axes)), rng.normal(0.1, 1, size=(5000, n_axes))
    automatic = kernels.kernel_metric(p, q, bandwidth=bandwidth)
    assert automatic == pytest.approx(kernels.kernel_metric(p, q, bandwidth=bandwidth, method="direct"), abs=1e-12)
    own = kernels.kernel_metric(p, p, bandwidth=bandwidth)
    assert own == pytest.approx(kernels.kernel_metric(p, p, bandwidth=bandwidth, method="direct"), abs=1e-12)
    if bandwidth == 1e-9:
        assert own == pytest.approx(1 / 4000, abs=1e-15)
    if bandwidth == 1e9:
        assert automatic == pytest.approx(1, abs=1e-12)


def test_without_finufft(monkeypatch):
    """The extra is missing: sums go term by term, and asking for Fourier space names what to install."""
    rng = np.random.default_rng(0)
    p = rng.normal(size=(3000, 2))
    fast = kernels.kernel_metric(p, p, bandwidth=1, method="fourier")
    monkeypatch.setitem(sys.modules, "finufft", None)
    monkeypatch.setattr(fourier, "is_installed", lambda: False)
    assert kernels.kernel_metric(p, p, bandwidth=1) == pytest.approx(fast, abs=1e-11)
    with pytest.raises(MissingExtraError, match=r"pip install finufft, .* extra 'metrics', or use method='direct'"):
        kernels.kernel_metric(p, p, bandwidth=1, method="fourier")


def test_the_cards_code_agrees_with_direct(monkeypatch):
    """What runs on a graphics card runs under numpy here, in several tiles, and gives the same sums."""
    rng = np.random.default_rng(0)
    p, q, v = rng.normal(size=(301, 4)), rng.normal(size=(150, 4)), shares(150)
    monkeypatch.setattr(gpu, "find_library", lambda: gpu.Library(np.exp, np.asarray, np.asarray))
    monkeypatch.setattr(gpu, "_TILE", 64)
    for compared in (kernels.mmd, kernels.mmd_squared_unbiased):
        there, here = (compared(p, q, synthetic_weights=v, bandwidth=1, method=method) for method in ("gpu", "direct"))
        assert there == pytest.approx(here, abs=1e-12)
    there, here = (kernels.kernel_density(q, p, weights=v, bandwidth=1, method=method) for method in ("gpu", "direct"))
    assert there == pytest.approx(here, abs=1e-14)


def test_without_a_card(monkeypatch):
    """Neither library, or neither with a card: the message names both and the way out."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="torch or cupy and a CUDA card; use method='auto'"):
        kernels.mmd([0.0], [1.0], bandwidth=1, method="gpu")


def test_a_published_kernel_mean_in_fourier_space():
    """The mean of Balog et al.'s full kernel matrix, 10^10 entries."""
    points = twins.balog(2)
    assert kernels.kernel_metric(points, points, gamma=1e-4 / 2) == pytest.approx(0.21215986369427045, abs=1e-12)


def test_a_published_kernel_mean_term_by_term():
    """In five dimensions, by 8 of the 256 pairs of sixteenths of the points; `make bench` sums all 10^10 entries."""
    points = twins.balog(5)
    means = [kernels.kernel_metric(points[k::16], points[k + 8 :: 16], gamma=1e-4 / 5) for k in range(8)]
    assert np.mean(means) == pytest.approx(0.1672984963245975, abs=1e-3)
    others = [kernels.kernel_metric(points[k::16], points[k + 8 :: 16], gamma=1.04e-4 / 5) for k in range(2)]
    assert abs(np.mean(others) - np.mean(means[:2])) > 1e-3  # a gamma that is a little off is noticed


# ------------------------------------------------------------------------------------------- unbiased and closed


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 7), st.integers(2, 7), st.integers(1, 4), st.floats(0.05, 5), st.integers(0, 1000))
def test_unbiased_form_agrees_with_its_twin(n, m, n_axes, gamma, seed):
    """Pairs of a point with itself are left out."""
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(n, n_axes)), rng.normal(size=(m, n_axes))
    expected = twins.mmd_squared_unbiased(p, q, gamma)
    assert kernels.mmd_squared_unbiased(p, q, gamma=gamma) == pytest.approx(expected, abs=1e-13)


def test_unbiased_form_is_unbiased_and_the_other_is_not():
    """Over many pairs of samples of one law the mean is 0; the V-statistic's is not."""
    rng = np.random.default_rng(3)
    pairs = [(rng.normal(size=(20, 2)), rng.normal(size=(20, 2))) for _ in range(1500)]
    unbiased = np.array([kernels.mmd_squared_unbiased(p, q, bandwidth=1) for p, q in pairs])
    biased = np.array([kernels.mmd(p, q, bandwidth=1) ** 2 for p, q in pairs])
    spread = 4 * unbiased.std() / math.sqrt(len(pairs))
    assert abs(unbiased.mean()) < spread
    assert biased.mean() > spread


@pytest.mark.parametrize("n_axes", [1, 2, 4])
def test_closed_form_against_the_gaussian(n_axes):
    """Supplement H: agrees with a large sample in place of N(0, I), and differs for a wrong law."""
    rng = np.random.default_rng(n_axes)
    sample = rng.normal(0.5, 1.3, size=(400, n_axes))
    large = rng.normal(size=(60_000 if n_axes < 4 else 20_000, n_axes))
    closed = kernels.mmd_squared_to_gaussian(sample, bandwidth=1.2)
    assert closed == pytest.approx(kernels.mmd_squared_unbiased(sample, large, bandwidth=1.2), abs=4e-3)
    assert closed != pytest.approx(kernels.mmd_squared_unbiased(sample, large - 1, bandwidth=1.2), abs=8e-3)
    own = rng.normal(size=(2000, n_axes))
    assert abs(kernels.mmd_squared_to_gaussian(own, bandwidth=1)) < 2e-3


def test_closed_form_in_one_dimension_by_quadrature():
    """The two expectations of supplement H are the integrals they stand for."""
    z, sigma = np.array([-0.3, 0.4, 2.0]), 0.7
    x = np.linspace(-12, 12, 4001)
    law = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    kernel = np.exp(-((x[:, None] - x) ** 2) / (2 * sigma**2))
    cross = law @ np.exp(-((x[:, None] - z) ** 2) / (2 * sigma**2))
    others = np.mean([twins.kernel([a], [b], 1 / (2 * sigma**2)) for a in z for b in z if a != b])
    expected = law @ kernel @ law - 2 * cross.mean() + others
    assert kernels.mmd_squared_to_gaussian(z, bandwidth=sigma) == pytest.approx(expected, abs=1e-10)


def test_conversions():
    """MMD <= e implies sup <= e; sup <= e implies MMD <= sqrt(2e); both hold on real sets and are capped."""
    assert kernels.sup_bound_from_mmd(0.25) == 0.25
    assert kernels.mmd_bound_from_sup(0.02) == pytest.approx(0.2)
    assert kernels.sup_bound_from_mmd(1.4) == 1
    assert kernels.mmd_bound_from_sup(3) == math.sqrt(2)
    for convert in (kernels.sup_bound_from_mmd, kernels.mmd_bound_from_sup):
        with pytest.raises(ParameterError, match="distance=-1"):
            convert(-1)
        with pytest.raises(ParameterError, match="distance=nan"):
            convert(float("nan"))


# ----------------------------------------------------------------------------------------------------- manners


def test_tables_of_numbers_are_points():
    """Frames are read by column name, whatever their order; arrays of one dimension may come flat."""
    one = pd.DataFrame({"x": [0.0, 1.0], "y": [2.0, 3.0]})
    two = pl.DataFrame({"y": [2.0, 3.5], "x": [0.0, 1.0]})
    expected = kernels.mmd([[0, 2], [1, 3]], [[0, 2], [1, 3.5]], bandwidth=1)
    assert kernels.mmd(one, two, bandwidth=1) == expected
    with pytest.raises(InputError, match="synthetic has columns 'y' and 'z' where real has"):
        kernels.mmd(one, two.rename({"x": "z"}), bandwidth=1)
    assert kernels.mmd([0, 1], [[0], [1]], bandwidth=1) == 0
    assert kernels.kernel_density([0.0], np.empty((0, 1)), bandwidth=1).shape == (0,)


@in_one_test(
    ("change", "message"),
    [
        ({"bandwidth": 0}, "bandwidth=0 is not a positive"),
        ({"bandwidth": -1}, "bandwidth=-1 is not a positive"),
        ({"bandwidth": float("nan")}, "bandwidth=nan"),
        ({"bandwidth": float("inf")}, "bandwidth=inf"),
        ({"bandwidth": 1e-200}, "bandwidth=1e-200 is outside"),
        ({"bandwidth": "wide"}, "bandwidth='wide' is not a number"),
        ({"bandwidth": None}, "either bandwidth .* or gamma"),
        ({"gamma": 1}, "not both"),
        ({"bandwidth": None, "gamma": 0}, "gamma=0 is not a positive"),
        ({"method": "magic"}, "method='magic' is not one of"),
        ({"method": "fourier"}, "up to 3 dimensions"),
        ({"real": np.zeros((3, 2))}, "synthetic has 4 columns where real has 2"),
        ({"real": np.zeros((3, 4, 1))}, r"real has shape \(3, 4, 1\)"),
        ({"real": np.zeros((0, 4))}, "real has no points"),
        ({"synthetic": np.full((3, 4), np.nan)}, "synthetic holds a missing or non-finite"),
        ({"synthetic": [["a"] * 4]}, "synthetic does not hold numbers"),
        ({"synthetic": object()}, "synthetic does not hold numbers"),
        ({"real_weights": [1.0]}, r"real_weights has shape \(1,\) for 5 points"),
        ({"real_weights": np.full(5, 0.3)}, "real_weights adds up to 1.5, not to 1"),
        ({"real_weights": np.full(5, np.nan)}, "real_weights holds a missing"),
        ({"synthetic_weights": ["x"] * 5}, "synthetic_weights does not hold numbers"),
        ({"synthetic_weights": [2.0, -1.0, 0, 0, 0]}, "synthetic_weights holds a negative"),
    ],
)
def test_bad_input_names_the_argument(change, message):
    """Whatever is wrong, the message says which argument."""
    rng = np.random.default_rng(0)
    call = {"real": rng.random((5, 4)), "synthetic": rng.random((5, 4)), "bandwidth": 1.0} | change
    with pytest.raises((InputError, ParameterError), match=message):
        kernels.mmd(call.pop("real"), call.pop("synthetic"), **call)


def test_bad_input_elsewhere():
    """The same for the functions of one set."""
    with pytest.raises(InputError, match="at has 2 columns where points has 1"):
        kernels.kernel_density([0.0], [[0.0, 1.0]], bandwidth=1)
    with pytest.raises(InputError, match="weights adds up to 2"):
        kernels.kernel_density([0.0], [0.0], weights=[2.0], bandwidth=1)
    with pytest.raises(InputError, match="sample has fewer than two points"):
        kernels.mmd_squared_to_gaussian([0.0], bandwidth=1)
    with pytest.raises(InputError, match="synthetic has fewer than two points of positive weight"):
        kernels.mmd_squared_unbiased([0.0, 1.0], [0.0, 1.0], synthetic_weights=[1.0, 0.0], bandwidth=1)


def test_tiles_agree_with_sums_term_by_term():
    """In many dimensions sums go by products of matrices, in blocks that need not fit; the numbers stay the same."""
    rng = np.random.default_rng(8)
    points, others = rng.normal(40, 1, (2300, 24)), rng.normal(40.2, 1, (1100, 24))
    for one, two in ((points, others), (points, points)):
        fast, slow = (kernels.kernel_metric(one, two, bandwidth=6, method=method) for method in ("auto", "direct"))
        assert fast == pytest.approx(slow, rel=1e-12)
        assert 0 < slow < 1
