"""Random orders dealt in parts: every item once, every order alike, the same on any number of cores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from spinney.tree.release import draw as shuffle
from spinney.tree.release.draw import deal
from support.strategies import MODEST


def order_of(n_items: int, rng: np.random.Generator, **parts: int) -> np.ndarray:
    """The item at every place; -1 where none is."""
    order = np.full(n_items, -1)
    for part in deal(n_items, rng, **parts):
        order[part.span][part.places()] = part.items
    return order


@MODEST
@given(st.integers(0, 500), st.integers(1, 100), st.integers(1, 8), st.integers(0, 2**32))
def test_every_item_has_one_place(n_items: int, part: int, most_parts: int, seed: int) -> None:
    """However many parts there are, also where a part gets nothing; items of a part ascend."""
    cut = {"part_items": part, "most_parts": most_parts}
    assert np.array_equal(np.sort(order_of(n_items, np.random.default_rng(seed), **cut)), np.arange(n_items))
    parts = deal(n_items, np.random.default_rng(seed), **cut)
    assert len(parts) == min(max(1, -(-n_items // part)), most_parts)
    assert all((np.diff(part.items) > 0).all() for part in parts)


def test_a_large_order_is_whole() -> None:
    """With parts as large as they are in use: every item once, and no part far from its share."""
    n_items = 5 * shuffle.PART_ITEMS + 7
    sizes = [part.items.size for part in deal(n_items, np.random.default_rng(0))]
    assert len(sizes) == 6
    assert np.abs(np.array(sizes) - n_items / 6).max() < 6 * np.sqrt(n_items / 6)
    assert np.array_equal(np.sort(order_of(n_items, np.random.default_rng(0))), np.arange(n_items))


def _p_value(draw: Callable[[np.random.Generator], tuple[int, ...]]) -> float:
    """Of the hypothesis that all orders of four items are equally likely, from 960 draws."""
    rng = np.random.default_rng(3)
    seen = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(960):
        seen[draw(rng)] += 1
    return float(chisquare(list(seen.values())).pvalue)


def test_all_orders_are_equally_likely(monkeypatch) -> None:
    """In two parts and in one; neither dealing alone nor shuffling halves alone would pass."""
    assert _p_value(lambda rng: tuple(order_of(4, rng).tolist())) > 1e-3
    monkeypatch.setenv("SPINNEY_THREADS", "1")
    assert _p_value(lambda rng: tuple(order_of(4, rng, part_items=2).tolist())) > 1e-3
    assert _p_value(lambda rng: tuple(i for part in deal(4, rng, part_items=2) for i in part.items.tolist())) < 1e-6
    assert _p_value(lambda rng: (*rng.permutation(2).tolist(), *(2 + rng.permutation(2)).tolist())) < 1e-6


@pytest.mark.parametrize("every", [1, 2, 64, 1000])
def test_neighbours_have_nothing_in_common(every: int) -> None:
    """Items `every` places apart are unrelated, across and inside parts, and so is an item with its place."""
    order = order_of(100_000, np.random.default_rng(5), part_items=1000)
    limit = 5 / np.sqrt(order.size / every)
    assert abs(np.corrcoef(order[:-every], order[every:])[0, 1]) < limit
    assert abs(np.corrcoef(order[::every], np.arange(0, order.size, every))[0, 1]) < limit
    assert abs(order[::every].mean() / order.size - 0.5) < limit


def test_a_seed_gives_one_order_on_any_number_of_cores(monkeypatch) -> None:
    """Streams belong to parts, not to threads; another seed, or the same generator again, gives another order."""
    orders = []
    for n_cores in ("1", "2", "7", ""):
        monkeypatch.setenv("SPINNEY_THREADS", n_cores)
        orders.append(order_of(20_000, np.random.default_rng(1), part_items=500))
    assert all(np.array_equal(order, orders[0]) for order in orders)
    rng = np.random.default_rng(1)
    first, second = order_of(20_000, rng, part_items=500), order_of(20_000, rng, part_items=500)
    assert np.array_equal(first, orders[0])
    assert not np.array_equal(second, first)
    assert not np.array_equal(order_of(20_000, np.random.default_rng(2), part_items=500), first)
