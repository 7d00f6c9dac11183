"""PaperTreeSynthesizer: the paper's Algorithms 2 and 3, under the paper's own names.

    depth k < h          split
    h <= k < h'          split where count + Lap(2 (h' - h) / epsilon') > tau
    leaf                 released where count + Lap(2 / epsilon'') >= t

with epsilon' for the decisions and epsilon'' for the counts, epsilon' + epsilon'' = epsilon. Noise is discrete Laplace,
and empty leaves are drawn exactly (docs/errata.md). For a table of your own take `KDTreeSynthesizer`, whose noise does
not grow with depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import ParameterError
from spinney.privacy.budget import parse_length, parse_share
from spinney.schema.lattice import Lattice, tree_lattice
from spinney.shown import as_given
from spinney.synthesizers.base import PublicFacts
from spinney.synthesizers.binning import PartitionSynthesizer
from spinney.synthesizers.defaults import paper_cutoff, paper_depths, paper_threshold
from spinney.synthesizers.validation import check_depth, parse_cutoff, parse_depth, parse_threshold
from spinney.tree.plan import SplitPlan, paper_plan

_TREE_SHARE = Fraction(1, 2)

# What the paper's symbols are called elsewhere in the library and on the command line.
PAPER_NAMES = {
    "fixed_depth": "h",
    "max_depth": "h_prime",
    "largest_edge": "s1",
    "smallest_edge": "s2",
    "cutoff": "tau",
    "threshold": "t",
}


class PaperTreeSynthesizer(PartitionSynthesizer):
    """Synthetic rows from the tree of the paper's Algorithms 2 and 3. Leaves release noisy counts, those below t none.

    >>> import numpy as np, spinney as sp
    >>> table = np.random.default_rng(0).normal(size=(1000, 2))
    >>> schema = sp.Schema({"x": sp.Real(-5, 5), "y": sp.Real(-5, 5)})
    >>> model = sp.PaperTreeSynthesizer(epsilon="2", h=4, h_prime=8, axes="cube", placement="centre").fit(table, schema)
    >>> points, weights = model.weighted_points()

    Args:
        epsilon: epsilon, the whole budget, exact: a number or text such as "0.1" or "1/3".
        unit: "replace-one" (the number of rows is public; the paper's) or "add-remove" (it is private).
        h: h, the number of levels that split whatever the data. By default two fewer than log2 of the number of bins
            that a grid would have.
        h_prime: h', the depth at which splitting ends. By default two more cuts of every axis than h.
        s1: s1, the largest edge that a leaf may have, in units of the columns; another way to give h.
        s2: s2, the edge at which splitting ends, in units of the columns; another way to give h'.
        tau: tau, the cutoff: between h and h' a node splits if its noisy count is above it. By default the lemma's,
            with which no empty node splits, except with a chance of 0.01.
        t: t, the threshold: leaves whose noisy count is below it are not released. By default 8 / epsilon'' log(2^h).
        tree_share: epsilon' / epsilon, the part of the budget for split decisions; the rest is for counts. By default
            one half.
        axes: "boxes" scales each column to its own bounds; "cube" makes all edges equal, as in the paper.
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their leaf: "tilted" (the default), "uniform" or, as in the paper, "centre".
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
    """

    _in_column_units = ("s1", "s2")
    _elsewhere: ClassVar[Mapping[str, str]] = {
        **{name: f"the paper's name for it is `{symbol}`" for name, symbol in PAPER_NAMES.items()},
        "rule": "it always follows the paper's rule; sp.KDTreeSynthesizer follows PrivTree's",
        "moments": "sp.KDTreeSynthesizer has it; the paper's leaves release counts alone",
        "focus": "sp.KDTreeSynthesizer has it",
    }

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        unit: str = "replace-one",
        h: int | None = None,
        h_prime: int | None = None,
        s1: float | None = None,
        s2: float | None = None,
        tau: float | None = None,
        t: float | None = None,
        tree_share: Any = None,
        axes: str = "boxes",
        bounds_share: Any = "0.1",
        placement: str | None = None,
        assumed_rows: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.unit = unit
        self.h = h
        self.h_prime = h_prime
        self.s1 = s1
        self.s2 = s2
        self.tau = tau
        self.t = t
        self.tree_share = tree_share
        self.axes = axes
        self.bounds_share = bounds_share
        self.placement = placement
        self.assumed_rows = assumed_rows

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        lattice = tree_lattice(facts.schema.modelled, axes=self.axes)
        h, h_prime = self._depths(lattice, facts)
        share = _TREE_SHARE if self.tree_share is None else parse_share(self.tree_share, "tree_share")
        decision_epsilon = facts.epsilon * share if h_prime > h else Fraction(0)
        count_epsilon = facts.epsilon - decision_epsilon
        if self.tau is None:
            tau = paper_cutoff(facts.n_rows, h, h_prime, decision_epsilon, facts.unit)
        else:
            tau = parse_cutoff(self.tau, "tau")
        plan = paper_plan(
            unit=facts.unit,
            fixed_depth=h,
            max_depth=h_prime,
            decision_epsilon=decision_epsilon,
            count_epsilon=count_epsilon,
            cutoff=tau,
            threshold=paper_threshold(h, count_epsilon) if self.t is None else parse_threshold(self.t, "t"),
        )
        return lattice, plan

    def _depths(self, lattice: Lattice, facts: PublicFacts) -> tuple[int, int]:
        """H and h': given as depths, given as edges, or automatic."""
        automatic_h, automatic_h_prime = paper_depths(lattice, facts.n_rows, facts.epsilon)
        h_prime = _depth_on(lattice, self.h_prime, "h_prime", self.s2, "s2")
        h = _depth_on(lattice, self.h, "h", self.s1, "s1")
        if not facts.found_bounds:
            check_depth(h_prime, "h_prime", lattice)
            check_depth(h, "h", lattice)
        if h_prime is None:
            h_prime = max(automatic_h_prime, h or 0)
        if h is None:
            h = min(automatic_h, h_prime)
        if h > h_prime:
            raise ParameterError(f"h={h} is above h_prime={h_prime}; lower one or raise the other")
        return min(h, lattice.depth), min(h_prime, lattice.depth)


def _depth_on(lattice: Lattice, depth: Any, depth_name: str, edge: Any, edge_name: str) -> int | None:
    """The depth that was asked for, as such or as an edge length, or None."""
    if depth is not None and edge is not None:
        raise ParameterError(f"give {depth_name} or {edge_name}, not both")
    if edge is not None:
        try:
            return lattice.depth_for_edge(parse_length(edge, edge_name))
        except ParameterError as err:
            raise ParameterError(f"{edge_name}={as_given(edge)}: {err}") from None
    return None if depth is None else parse_depth(depth, depth_name)
