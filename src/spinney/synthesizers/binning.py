"""What grid and tree have in common: one partition of space, released as bins or as leaf moments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Charge, Ledger
from spinney.release.options import explains_options
from spinney.release.row_count import noisy_rows_entry
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema
from spinney.synthesizers.base import PublicFacts, Synthesizer
from spinney.synthesizers.rehearsal import Partition
from spinney.synthesizers.utility import even_cuts, with_utility
from spinney.tables.source import Source
from spinney.tree.kdtree import check_size, release_tree
from spinney.tree.moments import check_leaves, release_moments
from spinney.tree.plan import SplitPlan
from spinney.tree.release.binned import BinnedRelease
from spinney.tree.release.moments import MomentsRelease, check_moment_placement
from spinney.tree.release.placement import check_placement


class PartitionSynthesizer(Synthesizer[tuple[Lattice, SplitPlan]]):
    """Common part of the grid and the tree. Subclasses say which lattice and plan follow from public facts."""

    placement: str | None

    _in_column_units: ClassVar[tuple[str, ...]] = ()  # parameters that are lengths

    plan_: SplitPlan
    release_: BinnedRelease | MomentsRelease

    @explains_options
    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
        like: Any = None,
        parts: int | str | None = None,
        placement: str | None = None,
        draws: int | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted. Costs no epsilon, however often.

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a table, or its `dtypes` or `schema`, whose column types the rows get; see `Release.sample`.
            parts: in how many parts to draw rows that memory does not hold, or "auto"; gives a `SampleParts`, see
                `Release.sample`.
            placement: where rows lie in their leaf or bin: "uniform" or "centre", "fitted" to the moments of a leaf,
                "tilted" in a bin; by default as it was fitted.
            draws: how many tables to draw from leaf moments, each with fresh noise, so that their spread carries the
                noise of the release; a list of so many tables. Without it, one table.

        Raises:
            ParameterError: an option is unknown or out of range, or a type in `like` cannot hold what the schema
                allows.
        """
        self._fitted()
        options: dict[str, Any] = {} if draws is None else {"draws": draws}  # which bins do not have
        options |= {"parts": parts, "placement": placement}
        return self.release_.sample(n_rows, seed=seed, frame=frame, like=like, **options)

    @explains_options
    def weighted_points(
        self, *, frame: str | None = None, placement: str | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The release as points with weights that add up to 1, the paper's output.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
            placement: where the point of a leaf or bin lies; by default "fitted" to the means of a leaf, and at the
                "centre" of a bin.
        """
        self._fitted()
        return self.release_.weighted_points(frame=frame, placement=placement)

    @abstractmethod
    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        """The lattice and the plan, from public facts only; raises on parameters out of range."""

    def _check(self, schema: Schema) -> None:
        self._refuse_forest_only(schema, computes=True)
        # Lengths wait for the columns' bounds: until these are found nobody can tell if they fit.
        for name in self._in_column_units:
            if getattr(self, name) is not None and schema.awaits_bounds:
                raise ParameterError(
                    f"{name} is measured in units of the columns, and some bounds are not known yet; "
                    "state the bounds, or give a number of levels or bins instead"
                )

    def _rehearse(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        lattice, plan = self._design(facts)
        if self.placement is not None:
            (check_moment_placement if plan.has_moments else check_placement)(self.placement)
        if plan.has_moments:
            check_leaves(plan, lattice)
        else:
            check_size(plan)
        return lattice, plan

    def _foreseen(
        self,
        facts: PublicFacts,  # noqa: ARG002
        rehearsed: tuple[Lattice, SplitPlan],
        class_size: float | None,  # noqa: ARG002 - of forests
    ) -> tuple[Partition, Sequence[Charge], Sequence[str]]:
        return Partition(*rehearsed), rehearsed[1].charges(), ()

    def _release(
        self,
        table: Source,
        facts: PublicFacts,
        ledger: Ledger,
        entropy: Entropy,
        rehearsed: tuple[Lattice, SplitPlan] | None,
    ) -> BinnedRelease | MomentsRelease:
        lattice, plan = self._design(facts) if rehearsed is None else rehearsed
        counts = table.count_cells(lattice)
        if facts.rows_epsilon:  # paid for once all cells were read; the lattice is the same for every number of rows
            facts, (_, plan) = self._count_rows(counts.true_total(), facts, ledger, entropy)
        described = plan.to_dict() | noisy_rows_entry(facts.row_count)
        release: BinnedRelease | MomentsRelease
        if plan.has_moments:
            moments = release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)
            card = self._card(table, ledger, plan=described, released={"leaves": len(moments)}, schema=facts.schema)
            release = MomentsRelease(moments, card, placement=self.placement or "fitted", reads_decisions=True)
        else:
            bins = release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)
            card = self._card(table, ledger, plan=described, released={"bins": len(bins)}, schema=facts.schema)
            release = BinnedRelease(bins, card, placement=self.placement or "tilted")
        self.plan_ = plan
        if self._paid_figures is None:
            return release
        return with_utility(release, table, even_cuts(facts.schema.modelled), self._paid_figures.noisy_figures)
