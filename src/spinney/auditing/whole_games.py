"""Whole fits: tables go in through the front door, and what is looked at is the release that comes out.

One fit a coin. White box, the noisy numbers that the release holds; black box, rows that are drawn from it. Here is
what all such games share, and the game of trees; those of forests and persons are in `whole_forests`, `whole_persons`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
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
from spinney.synthesizers.binning import PartitionSynthesizer
from spinney.synthesizers.grid import GridSynthesizer
from spinney.synthesizers.paper_tree import PaperTreeSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

# Rows that are drawn: so many that the noise of the release is larger than that of drawing.
N_SAMPLED = 50_000
_FAR = 40.0
_BINS = 8  # of each axis of a grid


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
    """A tree or a grid of stated bounds: a row far above the others, or none; under replace-one, far below.

    Bins have the lowest threshold, so that nothing that is counted stays hidden.
    """

    family = "whole tree"

    def __init__(
        self,
        unit: Unit,
        epsilon: Any,
        *,
        kind: str = "tree",
        moments: bool = True,
        threshold: int | None = None,
        n_columns: int = 1,
        black_box: bool = False,
    ) -> None:
        self._names = [f"x{place}" for place in range(n_columns)]
        self._schema = Schema({name: Real(-100, 100) for name in self._names})
        self._unit_text, self._rows = unit.value, np.linspace(-5, 5, 60)
        common: dict[str, Any] = {"unit": self._unit_text, "assumed_rows": None if unit.n_is_public else 60}
        self._make: Callable[[], PartitionSynthesizer]
        if kind == "grid":
            self._make = lambda: GridSynthesizer(epsilon, bins=_BINS, threshold=threshold, **common)
        elif kind == "paper":
            self._make = lambda: PaperTreeSynthesizer(epsilon, t=threshold, **common)
        else:
            self._make = lambda: KDTreeSynthesizer(epsilon, moments=moments, threshold=threshold, **common)
        self.path = f"{type(self._make()).__name__}.fit"
        what = {"grid": f"{_BINS} bins an axis", "paper": "the paper's tree"}.get(
            kind, "leaf means" if moments else "bins"
        )
        columns = f"{n_columns} columns, " if n_columns > 1 else ""
        self.what = f"{columns}{what}, epsilon {epsilon}"
        super().__init__(unit, black_box=black_box)

    def _fit(self, coin: bool) -> PartitionSynthesizer:
        is_public = self._unit_text == Unit.REPLACE_ONE.value
        end = [_FAR] if coin else ([-_FAR] if is_public else [])
        table = np.repeat(np.append(self._rows, end)[:, None], len(self._names), axis=1)
        return self._make().fit(table, self._schema, ledger=False)

    def _look(self, release: Release) -> tuple[Floats, float]:
        if self._black_box:
            values = np.asarray(release.sample(N_SAMPLED, frame="numpy"), dtype=np.float64)[:, 0]
            above, below = (values > 12).mean(), (values < -12).mean()
            return np.array([above, below, values.min(), values.max()]), float(above - self._less(below))
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
        ends = []
        for end in (_FAR, -_FAR):
            cells = np.array([each.scale * (end - each.origin) for each in lattice.axes])
            over = ((first <= cells) & (cells < first + size)).all(axis=1)
            ends += [float(noisy[over].sum()), float(depths[over].sum())]
        # Laplace noise says one of two things of a count that is 0 or 1: which of the two it is nearer to.
        above, below = np.clip([ends[0], ends[2]], 0, 1)
        seen = [*ends, float(axis.low), float(axis.high), float(noisy.sum())]
        return np.array(seen), float(above - self._less(below))

    def _less(self, below: float) -> float:
        """What speaks for the first of the two tables, where that has a row of its own."""
        return below if self.unit.n_is_public else 0.0
