"""Whole fits: tables go in through the front door, and what is looked at is the release that comes out.

One fit a coin. White box, the noisy numbers that the release holds; black box, rows that are drawn from it. Here is
what all such games share, and the game of trees; those of forests and persons are in `whole_forests`, `whole_persons`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from spinney.auditing.claims import Claim, PureClaim, curve_of
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.columns import Real
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import ComposedRelease, Ledger
from spinney.release.model import Release
from spinney.schema.table import Schema
from spinney.schema.zorder import deinterleave
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

# Rows that are drawn: so many that the noise of the release is larger than that of drawing.
N_SAMPLED = 50_000


class FitGame(Game):
    """A fit of one of two tables. The first fit, whose release is thrown away, tells what was charged."""

    def __init__(self, unit: Unit, *, black_box: bool) -> None:
        self.unit, self._black_box = unit, black_box
        self.title = f"{self.what}, {'rows drawn from it' if black_box else 'noisy numbers'}"
        fitted = self._fit(False)
        self.claim = _claim_of(fitted.ledger_)
        self.weight = 2.0

    what: str

    @property
    def batch(self) -> int:
        return 8

    def play(self, coins: Coins) -> Seen:
        found = [self._look(self._fit(bool(coin)).release_) for coin in coins]
        return Seen(np.stack([outcome for outcome, _ in found]), np.array([ratio for _, ratio in found]))

    @abstractmethod
    def _fit(self, coin: bool) -> Any:
        """A model fitted to one of the two tables."""

    @abstractmethod
    def _look(self, release: Any) -> tuple[Floats, float]:
        """What is seen, and a statistic that grows with the likelihood of the second table."""


def _claim_of(ledger: Ledger) -> Claim:
    """Of one composed charge its curve, otherwise the sum of epsilons."""
    charges = [event for event in ledger.events if hasattr(event, "epsilon")]
    if len(charges) == 1 and isinstance(charges[0], ComposedRelease):
        return curve_of(charges[0].parts, ledger.unit)
    assert not ledger.spent_delta
    return PureClaim(float(ledger.spent))


class TreeFitGame(FitGame):
    """A tree over one column of stated bounds: a row far from the others, or among them."""

    family = "whole tree"
    path = "KDTreeSynthesizer.fit"

    def __init__(self, unit: Unit, epsilon: Any, *, moments: bool = True, black_box: bool = False) -> None:
        self._schema = Schema({"x": Real(-100, 100)})
        self._epsilon, self._moments, self._unit_text = epsilon, moments, unit.value
        self._rows = np.linspace(-5, 5, 60)
        self.what = f"{'leaf means' if moments else 'bins'}, epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> KDTreeSynthesizer:
        is_public = self._unit_text == Unit.REPLACE_ONE.value
        end = [40.0] if coin else ([0.0] if is_public else [])
        table = np.append(self._rows, end)[:, None]
        synthesizer = KDTreeSynthesizer(
            self._epsilon, moments=self._moments, unit=self._unit_text, assumed_rows=None if is_public else 60
        )
        return synthesizer.fit(table, self._schema, ledger=False)

    def _look(self, release: Release) -> tuple[Floats, float]:
        if self._black_box:
            values = np.asarray(release.sample(N_SAMPLED, frame="numpy"), dtype=np.float64)[:, 0]
            far, near = (values > 12).mean(), (np.abs(values) < 6).mean()
            return np.array([far, near, values.min(), values.max()]), float(far)
        if isinstance(release, BinnedRelease):
            lattice, codes, depths, noisy = (
                release.bins.lattice,
                release.bins.codes,
                release.bins.depths,
                release.bins.noisy_counts.astype(np.float64),
            )
        else:
            assert isinstance(release, MomentsRelease)
            found = release.moments
            lattice, codes, depths, noisy = (
                found.lattice,
                found.codes,
                found.depths,
                found.noisy_steps[:, 0] / found.quantum,
            )
        axis = lattice.axes[0]
        first, size = deinterleave(codes, depths, lattice)
        cell = axis.scale * (40.0 - axis.origin)
        over = (first[:, 0] <= cell) & (cell < first[:, 0] + size[:, 0])
        far = float(noisy[over].sum())
        seen = [far, float(depths[over].sum()), float(axis.low), float(axis.high), float(noisy.sum() - far)]
        return np.array(seen), far
