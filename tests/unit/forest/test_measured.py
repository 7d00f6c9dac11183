"""What forests keep of what they measured: the numbers that left the mechanisms, and models that follow from them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from golden import make
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.fit import refitter
from spinney.forest.release.measured import NoiseLaw
from support import small_forests


def codes_table() -> tuple[pd.DataFrame, sp.Schema]:
    """Codes in a hierarchy, most of them rare, some null."""
    rng = np.random.default_rng(3)
    codes = [f"{letter}{group}{code}" for letter in "ABCDEFG" for group in range(6) for code in range(9)]
    chances = rng.pareto(1.2, len(codes)) + 0.01
    drawn = rng.choice(codes, 3000, p=chances / chances.sum()).astype(object)
    drawn[rng.random(3000) < 0.1] = None
    frame = pd.DataFrame({"code": drawn, "age": rng.poisson(30, 3000), "sick": rng.random(3000) < 0.3})
    columns = {
        "code": sp.Category(codes, hierarchy=[1, 2], nullable=True),
        "age": sp.Integer(0, 120),
        "sick": sp.Boolean(),
    }
    return frame, sp.Schema(columns)


def piled_table() -> tuple[pd.DataFrame, sp.Schema]:
    """Numbers that pile up at 0, at round values and at the upper bound."""
    rng = np.random.default_rng(4)
    gain = np.where(rng.random(6000) < 0.6, 0, rng.lognormal(7, 1, 6000).round(-2).clip(0, 5000))
    part = np.where(rng.random(6000) < 0.3, 1.0, rng.random(6000))
    frame = pd.DataFrame({"gain": gain.astype(int), "part": part, "group": rng.choice([*"abc"], 6000)})
    return frame, sp.Schema({"gain": sp.Integer(0, 5000), "part": sp.Real(0, 1), "group": sp.Category([*"abc"])})


def ruled_table() -> tuple[pd.DataFrame, sp.Schema]:
    """Columns between which rules leave no room for some states."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 100, 4000)
    since = np.where(age > 15, (age * rng.random(4000)).astype(int), 0)
    frame = pd.DataFrame({"age": age, "since": since, "job": since > 0, "size": rng.normal(50, 9, 4000)})
    columns = {"age": sp.Integer(0, 120), "since": sp.Integer(0, 120), "job": sp.Boolean(), "size": sp.Real(0, 100)}
    rules = [
        sp.AtMost("since", "age"),
        sp.Implies({"job": False}, {"since": 0}),
        sp.Implies({"job": True}, {"size": (0, 90)}),
        sp.Implies({"job": False}, {"size": (0, 90)}),
    ]
    return frame, sp.Schema(columns, rules=rules)


FORESTS = {
    "target": lambda: (sp.ForestSynthesizer("5", "1e-6", target="is_female"), *make.forest_table()),
    "tree": lambda: (sp.ForestSynthesizer("5", "1e-6"), *make.mixed_table()),
    "pure": lambda: (
        sp.ForestSynthesizer("20", 0, quality="high", unit="add-remove", assumed_rows=800),
        *make.reals(3),
    ),
    "places": lambda: (sp.ForestSynthesizer("5", "1e-6"), *make.places_table()),
    "workload": lambda: (
        sp.ForestSynthesizer("10", "1e-6", unit="add-remove", workload=[("species", "grade"), ("age",)]),
        *make.mixed_table(),
    ),
    "rounds": lambda: (sp.ForestSynthesizer("5", "1e-6", quality="high"), *make.mixed_table()),
    "codes": lambda: (sp.ForestSynthesizer("3", "1e-6", unit="add-remove"), *codes_table()),
    "piles": lambda: (sp.ForestSynthesizer("1", "1e-6", target="group"), *piled_table()),
    "rules": lambda: (sp.ForestSynthesizer("3", "1e-6"), *ruled_table()),
    "little": lambda: (sp.ForestSynthesizer("0.02", "1e-6"), *make.mixed_table()),
}
each_forest = pytest.mark.parametrize("name", FORESTS)


def fitted(name: str):
    model, table, schema = FORESTS[name]()
    return model.fit(table, schema, entropy=sp.UnsafeSeededEntropy(11)).release_


# ------------------------------------------------------------------------------------------------------ what is kept


@each_forest
def test_a_release_holds_every_table_as_it_left_the_mechanisms(name, monkeypatch):
    """Counts before anything was cut, projected or fitted, each with the law of its noise, and no others."""
    left: list[tuple[str, NoiseLaw, tuple[int, ...]]] = []
    honest = PrepaidMechanisms.noisy_counts

    def watched(self, true_counts, stage):
        noisy = honest(self, true_counts, stage)
        left.append((stage, self.plan.noise_law(stage), tuple(noisy.tolist())))
        return noisy

    monkeypatch.setattr(PrepaidMechanisms, "noisy_counts", watched)
    measured = fitted(name).measured
    kept = [(table.stage, table.noise, tuple(table.noisy.tolist())) for table in measured.tables]
    for column in measured.columns:
        if column is None:
            continue
        stages = {stage for stage, _, counts in left if counts == tuple(column.noisy.tolist())}
        assert len(stages) == 1
        kept += [(*stages, column.noise, tuple(counts.tolist())) for counts in (column.noisy, *column.groups)]
        if column.piles is not None:
            kept.append(("spikes", column.piles.noise, tuple(column.piles.noisy.tolist())))
        if column.grain is not None:
            kept.append(("grain", column.grain.noise, tuple(column.grain.noisy.tolist())))
    assert sorted(kept, key=repr) == sorted(left, key=repr)


@each_forest
def test_what_was_measured_gives_the_model_again(name, tmp_path):
    """Weights and law of states follow from the kept numbers, also after a file."""
    release = fitted(name)
    release.save(tmp_path / "a.spinney")
    for one in (release, sp.load(tmp_path / "a.spinney")):
        refit = refitter(one)
        columns, model = refit.fit(refit.observed())
        for released, again in zip(refit.models, columns, strict=True):
            assert again.weights == pytest.approx(released.weights, abs=1e-9 * one.measured.total)
        assert model.tree.cliques == one.model.tree.cliques
        for released, again in zip(one.model.beliefs, model.beliefs, strict=True):
            assert again == pytest.approx(released, abs=1e-7)
        assert any(check.startswith("the model was fitted again") for check in one.verify_model())


@each_forest
def test_a_file_gives_back_what_was_kept(name, tmp_path):
    """Number by number; and equal releases are equal files."""
    release = fitted(name)
    release.save(tmp_path / "a.spinney")
    loaded = sp.load(tmp_path / "a.spinney")
    loaded.save(tmp_path / "b.spinney")
    assert (tmp_path / "a.spinney").read_bytes() == (tmp_path / "b.spinney").read_bytes()
    for kept, read in zip(release.measured.columns, loaded.measured.columns, strict=True):
        if kept is None:
            assert read is None
            continue
        assert (kept.kind, kept.noise, kept.given_depth) == (read.kind, read.noise, read.given_depth)
        for field in ("noisy", "leaf", "possible"):
            assert getattr(kept, field).tolist() == getattr(read, field).tolist()
        assert [group.tolist() for group in kept.groups] == [group.tolist() for group in read.groups]
        assert (kept.piles is None) == (read.piles is None)
        if kept.piles is not None:
            assert kept.piles.noise == read.piles.noise
            assert kept.piles.pile.tolist() == read.piles.pile.tolist()
    for kept, read in zip(release.measured.tables, loaded.measured.tables, strict=True):
        assert (kept.columns, kept.noise, kept.stage) == (read.columns, read.noise, read.stage)
        assert kept.noisy.tolist() == read.noisy.tolist()
        assert (kept.labels is None) == (read.labels is None)
        assert kept.labels is None or kept.labels.tolist() == read.labels.tolist()
    for field in ("total", "row_count", "regularization", "steps", "tilt"):
        assert getattr(release.measured, field) == getattr(loaded.measured, field)


def test_the_forests_of_these_tests_have_all_that_is_kept():
    """Piles, impossible leaves, boxes that rules exclude, groups of codes, both laws: or nothing would be tested."""
    measured = {name: fitted(name).measured for name in ("piles", "rules", "codes", "places", "pure")}
    piles = [column.piles for column in measured["piles"].columns if column.piles is not None]
    assert any((pile.pile >= 0).any() for pile in piles)
    # The last pile is at the end of the axis.
    assert any(pile.pile.max() == len(pile.noisy) - 1 for pile in piles)
    assert {column.noise.law for column in measured["piles"].columns} == {"discrete gaussian", "discrete laplace"}
    assert any(table.labels is not None and table.labels.min() == -1 for table in measured["rules"].tables)
    assert [len(column.groups) for column in measured["codes"].columns] == [2, 0, 0]
    assert [column.kind for column in measured["places"].columns] == ["place", "category", "place"]
    assert {column.noise.law for column in measured["pure"].columns} == {"discrete laplace"}


def test_columns_that_are_known_have_no_counts():
    """Nothing was measured of them, and nothing is kept."""
    frame = pd.DataFrame({"one": ["x"] * 200, "two": [*"ab"] * 100})
    schema = sp.Schema({"one": sp.Category(["x"]), "two": sp.Category([*"ab"])})
    release = sp.ForestSynthesizer("1").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    assert release.measured.columns[0] is None
    assert release.measured.columns[1] is not None


def test_counts_under_a_prior_are_those_before_it():
    """What public rows make of counts is not what was measured; such a release is not fitted again."""
    rows = small_forests.table(2000)
    model = sp.ForestSynthesizer("1", prior=small_forests.table(500))
    release = model.fit(rows, small_forests.SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_
    assert all(column is not None for column in release.measured.columns)
    assert not any("fitted again" in check for check in release.verify_model())


# ------------------------------------------------------------------------------------------------------ laws of noise


def shares(law: NoiseLaw, values: np.ndarray) -> np.ndarray:
    """The chances of some values, up to what is beyond them."""
    scale = float(law.scale)
    logs = -(values**2) / (2 * scale) if law.law == "discrete gaussian" else -scale * np.abs(values)
    chances = np.exp(logs)
    return chances / chances.sum()


def misfit(draws: np.ndarray, law: NoiseLaw) -> float:
    """Pearson's statistic over its degrees of freedom, of values that are expected ten times or more."""
    values = np.arange(-400, 401)
    expected = len(draws) * shares(law, values)
    found = np.bincount(draws + 400, minlength=801)
    is_common = expected >= 10
    found, expected = found[is_common], expected[is_common]
    return float(((found - expected) ** 2 / expected).mean())


LAWS = [
    NoiseLaw("discrete gaussian", Fraction(1, 3)),
    NoiseLaw("discrete gaussian", Fraction(9, 2)),
    NoiseLaw("discrete gaussian", Fraction(700)),
    NoiseLaw("discrete laplace", Fraction(1, 12)),
    NoiseLaw("discrete laplace", Fraction(2)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_simulated_noise_has_its_law(law):
    """Value by value; a scale of a twentieth more or less is told apart."""
    draws = law.draw(np.random.default_rng(0), 400_000)
    assert draws.dtype == np.int64
    assert misfit(draws, law) < 1.4
    for other in (Fraction(19, 20), Fraction(21, 20)):
        assert misfit(draws, NoiseLaw(law.law, law.scale * other)) > 2
    assert draws.std() <= law.std * 1.01


def test_noise_comes_in_the_shape_that_is_asked_for():
    """One number of draws or several."""
    law = LAWS[2]
    assert law.draw(np.random.default_rng(0), (3, 4)).shape == (3, 4)
    assert law.draw(np.random.default_rng(0), 0).shape == (0,)
