"""The data-dependent tree in numbers: how many noisy levels, how many empty bins, which cutoff leaves them whole.

h levels split whatever the data, the levels from h to h' by noisy counts. Spinney does not need these results for
privacy: its empty space is exact (tree/kdtree.py). They give `rule="paper"` the paper's automatic values.
"""

from __future__ import annotations

import math

from spinney.errors import ParameterError
from spinney_paper.theory.checks import Number, chance, noise_rate, positive, whole


def data_dependent_levels(*, largest_edge: Number, smallest_edge: Number, n_columns: int) -> int:
    """Levels of noisy decisions, h' - h: cuts from a cube of edge s1 to one of edge s2, d·log2(s1/s2). Theorem 7.

    One paragraph prints log2(s1/s2), which forgets that every column is cut; Algorithm 3 has it right but goes on below
    s2 ("< s2" for "<= s2"), which makes d more noisy decisions than its noise pays for.
    """
    s1, s2 = positive(largest_edge, "largest_edge"), positive(smallest_edge, "smallest_edge")
    halvings = math.log2(s1 / s2)
    if s1 < s2 or not math.isclose(halvings, round(halvings), abs_tol=1e-9):
        raise ParameterError(
            f"largest_edge={largest_edge} is not smallest_edge={smallest_edge} doubled a whole number of times; "
            "edges are halved, so give edges 2, 4, 8, ... apart"
        )
    return whole(n_columns, "n_columns", at_least=1) * round(halvings)


def most_empty_bins(n_rows: int, *, fixed_depth: int, max_depth: int) -> int:
    """Most empty leaves of a tree that splits no empty node below `fixed_depth`: 2^h + n (h' - h). Lemma 29.

    At depth h there are at most 2^h; below, every row's path passes at most one empty sibling per level. Printed
    without the condition, and then false: a tree that splits all its nodes has 2^h' - 1 empty leaves for one row.
    Without it the number still bounds the empty nodes whose parent is not empty or which lie at depth h, and that is
    all lemma 10 needs.
    """
    levels = _levels(fixed_depth, max_depth)
    return int(2**fixed_depth) + whole(n_rows, "n_rows", at_least=1) * levels


def cutoff_sparing_empty_bins(
    n_rows: int, *, fixed_depth: int, max_depth: int, epsilon: Number, delta: Number, factor: int = 2
) -> float:
    """The cutoff tau above which, with probability 1 - delta, no empty node splits. Lemma 10.

    tau = factor (h' - h) / epsilon' · log((2^h + n (h' - h)) / delta). Decisions carry noise of scale factor (h'-h) /
    epsilon', continuous or discrete: P(X > tau) <= exp(-tau / scale) for both, and the union runs over
    `most_empty_bins`.
    """
    from spinney.synthesizers.validation import lemma_cutoff  # loads numpy, which formulas do without

    levels = _levels(fixed_depth, max_depth)
    whole(n_rows, "n_rows", at_least=1)
    noise_rate(epsilon, factor)
    return lemma_cutoff(n_rows, fixed_depth, levels, float(epsilon), chance(delta, "delta"), factor)


def tree_threshold(fixed_depth: int, *, epsilon: Number, factor: int = 2) -> float:
    """Theorem 5's threshold for the 2^h bins of the fixed levels, at J = 1/delta = 2^h: 4 factor/epsilon'' · h log 2.

    Under replace-one this is the printed 8/epsilon · log(1/delta).
    """
    from spinney.synthesizers.validation import theorem_threshold  # loads numpy, which formulas do without

    noise_rate(epsilon, factor)
    return theorem_threshold(whole(fixed_depth, "fixed_depth", at_least=0), float(epsilon), factor)


def _levels(fixed_depth: int, max_depth: int) -> int:
    whole(fixed_depth, "fixed_depth", at_least=0)
    if whole(max_depth, "max_depth", at_least=0) < fixed_depth:
        raise ParameterError(f"max_depth={max_depth} is below fixed_depth={fixed_depth}; raise one or lower the other")
    return max_depth - fixed_depth
