"""The paper's tree at the front door: its symbols mean what the paper says, and its release says who made it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, SplitDecisions
from spinney.release.verify import verification
from support.command_line import spinney

GOLDEN = Path(__file__).parents[2] / "golden" / "v1-paper-wide.spinney"


def test_the_symbols_are_those_of_the_algorithms(square):
    """Depths h and h', cutoff tau and threshold t stand in the plan; noise is Lap(2 (h'-h) / epsilon') as printed."""
    model = sp.PaperTreeSynthesizer("3", h=4, h_prime=9, tau=17, t=6, tree_share="1/3").fit(*square)
    plan = model.plan_
    assert (plan.rule, plan.fixed_depth, plan.max_depth, plan.cutoff, plan.threshold) == ("paper", 4, 9, 17, 6)
    assert (plan.decision_epsilon, plan.count_epsilon) == (1, 2)
    assert 1 / plan.decision_rate == Fraction(2 * (9 - 4), 1)
    assert 1 / plan.count_rate == Fraction(2, 2)
    decisions, counts = model.ledger_.events
    assert decisions == SplitDecisions(
        Fraction(1), "paper", Fraction(1, 10), 5, "table: split decisions", stage="splits", times=1
    )
    assert counts == DiscreteLaplaceCounts(Fraction(2), 2, "table: leaf counts", stage="leaves", times=1)
    depths = model.release_.bins.depths
    assert depths.min() >= 4
    assert depths.max() <= 9
    assert model.release_.bins.noisy_counts.min() >= 6


@pytest.mark.parametrize("axes", ["boxes", "cube"])
def test_edges_are_another_way_to_give_depths(axes):
    """With a cube of edge R, h = d log2(R/s1) and h' = d log2(R/s2)."""
    points = np.random.default_rng(0).random((500, 2)) * 8
    schema = sp.Schema({"x": sp.Real(0, 8), "y": sp.Real(0, 8)})
    by_edge, by_depth = (
        sp.PaperTreeSynthesizer("2", axes=axes, **given).fit(points, schema).plan_
        for given in ({"s1": 2, "s2": "0.5"}, {"h": 4, "h_prime": 8})
    )
    assert by_edge == by_depth
    assert (by_edge.fixed_depth, by_edge.max_depth) == (2 * math.log2(8 / 2), 2 * math.log2(8 / 0.5))


def test_automatic_cutoff_and_threshold_are_the_papers(square):
    """tau of the lemma with delta = 0.01, and t = 8/epsilon'' log(1/delta) with delta = 2^-h."""
    points, schema = square
    plan = sp.PaperTreeSynthesizer("2", h=4, h_prime=8).fit(points, schema).plan_
    tau = 2 * 4 / 1 * math.log((2**4 + len(points) * 4) / 0.01)
    assert plan.cutoff == math.ceil(tau)
    assert plan.threshold == math.ceil(8 / 1 * 4 * math.log(2))


def test_a_cube_keeps_rows_within_the_bounds(square):
    """Edges of one length, with cells outside the bounds left out."""
    points = square[0] * [1, 3]
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 3)})
    model = sp.PaperTreeSynthesizer(50, axes="cube", placement="centre")
    rows = model.fit(points, schema, entropy=sp.UnsafeSeededEntropy(8)).sample(seed=1)
    assert (rows >= 0).all()
    assert (rows <= [1, 3]).all()
    assert np.abs(rows.mean(axis=0) - points.mean(axis=0)).max() < 0.1


def test_the_card_names_the_class(square, tmp_path):
    """A release says that the paper's tree made it, under the paper's names, and is verified as such."""
    model = sp.PaperTreeSynthesizer(2, h=3, h_prime=7).fit(*square)
    model.save(tmp_path / "tree.spinney")
    release = sp.load(tmp_path / "tree.spinney")
    assert release.card.synthesizer == "PaperTreeSynthesizer"
    assert (release.card.parameters["h"], release.card.parameters["h_prime"]) == (3, 7)
    assert verification(release).guarantee == "2-differential privacy (pure), unit replace-one"
    assert "split decisions: 4 levels" in spinney("verify", tmp_path / "tree.spinney").out


def test_the_first_file_of_the_papers_rule_is_as_good(square):
    """It names the class that had both rules then; rows, promise and checks are what they were."""
    release = sp.load(GOLDEN)
    assert (release.card.synthesizer, release.card.parameters["rule"]) == ("KDTreeSynthesizer", "paper")
    assert release.card.plan["rule"] == "paper"
    assert len(verification(release).checks) == 4
    assert len(release.sample(10, seed=1)) == 10
