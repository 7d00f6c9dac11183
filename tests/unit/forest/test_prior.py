"""Priors: public rows, or an earlier release, used where counts or private choices speak for them."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from pyarrow.dataset import dataset

import spinney as sp
from spinney.cli.app import app
from spinney.errors import InputError, ParameterError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.prior import trust
from spinney.release.card import ContradictionError
from spinney.release.verify import verification

N = 6_000
SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "wage": sp.Real(0, 10_000),
        "town": sp.Category(list("abcdef")),
        "ill": sp.Boolean(),
        "kids": sp.Integer(0, 9, nullable=True),
    }
)


def people(seed: int, n: int = N) -> pl.DataFrame:
    """All columns go with `age`."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 18, n), 0, 99).astype(int)
    kids = [None if k > 4 else int(k) for k in rng.poisson(age / 25)]
    return pl.DataFrame(
        {
            "age": age,
            "wage": np.round(np.clip(rng.normal(40 * age, 300), 0, 10_000), -2),
            "town": [
                list("abcdef")[min(5, a // 17)] if u < 0.7 else "a" for a, u in zip(age, rng.random(n), strict=True)
            ],
            "ill": rng.random(n) < age / 120,
            "kids": kids,
        }
    )


PRIVATE, PUBLIC = people(1), people(2)


def shuffled() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame({name: PUBLIC[name].gather(rng.permutation(N)) for name in PUBLIC.columns})


def fit(prior, epsilon="0.15", seed=1, **options):
    entropy = sp.UnsafeSeededEntropy(seed)
    return sp.ForestSynthesizer(epsilon, "1e-6", prior=prior, **options).fit(PRIVATE, SCHEMA, entropy=entropy)


def error(frame: pl.DataFrame) -> float:
    """Mean total variation of all pairs of columns, numbers in ten bins each."""
    codes = []
    for rows in (PRIVATE, frame):
        edges = {name: np.quantile(PRIVATE[name].drop_nulls(), np.arange(1, 10) / 10) for name in ("age", "wage")}
        parts = [np.searchsorted(edges[name], rows[name].to_numpy()) for name in edges]
        parts += [rows["town"].replace_strict(list("abcdef"), range(6)).to_numpy(), rows["ill"].to_numpy().astype(int)]
        parts.append(rows["kids"].fill_null(10).to_numpy())
        codes.append(parts)
    found = []
    for i in range(5):
        for j in range(i):
            tables = [np.bincount(parts[i] * 16 + parts[j], minlength=256) / len(parts[i]) for parts in codes]
            found.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(found))


def mean_error(prior, **options) -> float:
    return float(np.mean([error(fit(prior, seed=s, **options).sample(N, seed=s)) for s in range(3)]))


def test_a_prior_of_the_same_law_is_worth_several_times_the_budget():
    """At epsilon 0.15, public rows of the same law leave less error than four times the budget without them."""
    with_prior = mean_error(PUBLIC)
    assert with_prior < 0.6 * mean_error(None)
    assert with_prior < mean_error(None, epsilon="0.6")


@pytest.mark.parametrize("prior", [shuffled(), PUBLIC.filter(pl.col("age") < 30), PUBLIC.filter(pl.col("ill"))])
def test_a_biased_prior_does_not_hurt(prior):
    """Rows without dependence, or of some people alone, leave about as much error as no prior, or less."""
    assert mean_error(prior) < 1.2 * mean_error(None)


@pytest.mark.parametrize("delta", ["1e-6", 0])
@pytest.mark.parametrize("options", [{}, {"target": "ill"}, {"quality": "high"}, {"unit": "add-remove"}])
def test_every_structure_takes_a_prior(tmp_path, options, delta):
    """Choices are charged in a stage of their own; files load, verify and draw the same, conditions hold."""
    entropy = sp.UnsafeSeededEntropy(4)
    model = sp.ForestSynthesizer("2", delta, prior=PUBLIC, **options).fit(PRIVATE, SCHEMA, entropy=entropy)
    stage = next(stage for stage in model.explain().stages if stage.name == "prior")
    assert 0.01 < stage.share < 0.08
    assert model.card_.parameters["prior"] == {"kind": "table", "rows": N}
    assert "stated to be public" in str(model.card_)
    model.save(tmp_path / "it.spinney")
    again = sp.load(tmp_path / "it.spinney")
    assert again.verify_contents()
    assert again.sample(40, seed=3, frame="polars").equals(model.sample(40, seed=3))
    assert again.sample(40, seed=3, frame="polars", where={"town": "b"})["town"].unique().to_list() == ["b"]


def test_what_a_file_says_of_its_prior_is_checked():
    """Tables from a prior need a prior and choices that were paid for, and the explanation tells of them."""
    release = fit(PUBLIC, epsilon="2").release_
    alone = [names for names in release.from_prior if names not in release.looked_at]
    assert alone
    n_counted = len(set(release.looked_at))
    assert f"{n_counted} sets counted, {len(alone)} from the prior" in " ".join(str(release.explain()).split())
    assert any("came from the prior" in line for line in verification(release).checks)
    assert {c.reason for c in release.explain().cliques if c.columns in alone} == {"prior"}
    kept, release.from_prior = release.from_prior, ()
    with pytest.raises(ContradictionError, match="not counted together"):
        release.verify_contents()
    release.from_prior = kept
    release.card.parameters["prior"] = None
    with pytest.raises(ContradictionError, match="the call gave none"):
        release.verify_contents()


def test_a_release_and_a_file_are_priors(tmp_path):
    """A fitted model, its release, its file and the file of a table are taken; the card tells the guarantee."""
    last_year = sp.ForestSynthesizer("3").fit(PUBLIC, SCHEMA)
    last_year.save(tmp_path / "last.spinney")
    PUBLIC.write_csv(tmp_path / "last.csv")
    for prior in (last_year, last_year.release_, tmp_path / "last.spinney"):
        described = fit(prior).card_.parameters["prior"]
        assert described == {"kind": "release", "guarantee": last_year.card_.guarantee, "rows": N, "drawn": 100_000}
    fit(last_year).save(tmp_path / "now.spinney")
    assert "adds to the cost" in " ".join(str(sp.load(tmp_path / "now.spinney").card).split())
    assert fit(str(tmp_path / "last.csv")).card_.parameters["prior"] == {"kind": "table", "rows": N}


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (PUBLIC.drop("age"), "'age'"),
        (PUBLIC.with_columns(town=pl.lit("zzz")), "'town'"),
        (PUBLIC.head(0), "no rows"),
        (sp.ForestSynthesizer(), "not fitted"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused_before_budget_is_spent(prior, message):
    """The message names the argument and the column."""
    ledger = sp.Ledger(limit=5, delta="1e-3")
    with pytest.raises(sp.SpinneyError, match=message):
        sp.ForestSynthesizer(prior=prior).fit(PRIVATE, SCHEMA, ledger=ledger)
    assert ledger.spent == 0


def test_the_private_file_is_refused_as_its_own_prior_by_whatever_name(tmp_path):
    """Paths, links, lists, patterns, folders, CSV objects and lazy tables that share a file with the private table."""
    PRIVATE.write_csv(tmp_path / "t.csv")
    PRIVATE.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "u.csv").hardlink_to(tmp_path / "t.csv")
    (tmp_path / "v.csv").symlink_to(tmp_path / "t.csv")
    (tmp_path / "w.parquet").hardlink_to(tmp_path / "t.parquet")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.csv").hardlink_to(tmp_path / "t.csv")
    csv = [tmp_path / "t.csv", tmp_path / "u.csv", tmp_path / "v.csv", [str(tmp_path / "u.csv")], tmp_path / "folder"]
    csv += [str(tmp_path / "t*.csv"), sp.CSV(str(tmp_path / "u.csv")), pl.scan_csv(tmp_path / "u.csv")]
    parquet = [tmp_path / "w.parquet", pl.scan_parquet(tmp_path / "w.parquet"), dataset(tmp_path / "w.parquet")]
    parquet += [duckdb.read_parquet(str(tmp_path / "w.parquet"))]
    ledger = sp.Ledger(limit=5, delta="1e-3")
    for frame, priors in ((tmp_path / "t.csv", csv), (tmp_path / "t.parquet", parquet)):
        for prior in priors:
            with pytest.raises(ParameterError, match="shares a file"):
                sp.ForestSynthesizer(prior=prior).fit(str(frame), SCHEMA, ledger=ledger)
    assert ledger.spent == 0


def test_a_prior_that_changes_once_budget_is_spent_costs_nothing(tmp_path, monkeypatch):
    """Its rows are held while a fit is under way."""
    path = tmp_path / "last.csv"
    PUBLIC.write_csv(path)
    kept = fit(path).sample(100, seed=1)
    made = PrepaidMechanisms.__init__

    def spoiled(*given, **named):
        made(*given, **named)
        path.write_text("age,wage,town,ill,kids\n1,2,nowhere,True,3\n")

    monkeypatch.setattr(PrepaidMechanisms, "__init__", spoiled)
    PUBLIC.write_csv(path)
    assert fit(path).sample(100, seed=1).equals(kept)
    monkeypatch.setattr("spinney.synthesizers.forest._BYTES", 2**60)  # too many rows to be held
    PUBLIC.write_csv(path)
    with pytest.raises(InputError, match=r"prior: .*changed while it was read"):
        fit(path)


def test_a_damaged_release_is_called_one(tmp_path):
    """A file that was cut off, whatever it is called, is no table with a strange ending."""
    sp.ForestSynthesizer("3").fit(PUBLIC, SCHEMA).save(tmp_path / "last.spinney")
    whole = (tmp_path / "last.spinney").read_bytes()
    for name, content in (("cut.spinney", whole[:-30]), ("cut", whole[:-30]), ("none.spinney", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ParameterError, match=r"prior: .*is not a Spinney release, or is damaged"):
            fit(tmp_path / name)


def test_columns_that_the_schema_ignores_may_be_in_a_prior_or_not(tmp_path):
    """All, some or none of them: the release is the same, out of a frame, an array or a file."""
    n = 500
    columns = {name: SCHEMA[name] for name in ("age", "wage", "ill")}
    schema = sp.Schema({"note": sp.Ignore()} | columns | {"id": sp.Ignore()})
    told = PUBLIC.head(n).select(list(columns)).with_columns(pl.lit("x").alias("note"), pl.int_range(n).alias("id"))
    private = PRIVATE.head(n).select(list(columns)).with_columns(pl.lit("y").alias("note"), pl.int_range(n).alias("id"))
    told.write_csv(tmp_path / "all.csv")
    told.drop("id").write_parquet(tmp_path / "some.parquet")
    array = PUBLIC.head(n).select(list(columns)).cast(pl.Float64).to_numpy()
    wide = np.concatenate([np.ones((n, 1)), array, np.ones((n, 1))], axis=1)
    earlier = sp.ForestSynthesizer("1").fit(told, sp.Schema(columns | {"id": sp.Integer(0, n), "note": sp.Ignore()}))
    priors = [told, told.drop("id"), told.drop("note", "id"), told.lazy(), told.to_arrow(), told.to_pandas(), array]
    priors += [wide, tmp_path / "all.csv", [str(tmp_path / "some.parquet")]]
    made = []
    for prior in priors:
        model = sp.ForestSynthesizer("1", "1e-6", prior=prior)
        made.append(model.fit(private, schema, entropy=sp.UnsafeSeededEntropy(2)).sample(200, seed=1))
    assert made[0].columns == list(columns)
    assert all(rows.equals(made[0]) for rows in made)
    assert sp.ForestSynthesizer("1", prior=earlier).fit(private, schema).card_.parameters["prior"]["kind"] == "release"
    with pytest.raises(ParameterError, match="'other' is in the table but not in the schema"):
        sp.ForestSynthesizer("1", prior=told.with_columns(other=1)).fit(private, schema)


def test_trust_follows_how_far_the_prior_is_off():
    """Counts that differ by sampling alone give a ratio near 0, others one near what they differ by."""
    rng = np.random.default_rng(0)
    expected = np.full(50, 400.0)
    same = rng.poisson(expected) + rng.normal(0, 30, 50)
    other = expected * rng.choice([0.5, 1.5], 50) + rng.normal(0, 30, 50)
    assert trust(same, 30.0, expected, 1.0).ratio <= 0.05
    assert 0.2 <= trust(other, 30.0, expected, 1.0).ratio <= 1


def test_reprs_and_the_command_line(tmp_path):
    """`--prior` takes a file; a model with a frame as prior shows its shape alone."""
    assert "prior=<shape (6000, 5)>" in repr(sp.ForestSynthesizer(prior=PUBLIC))
    PUBLIC.write_csv(tmp_path / "last.csv")
    PRIVATE.write_csv(tmp_path / "now.csv")
    SCHEMA.to_file(tmp_path / "s.toml")
    given = [str(tmp_path / "now.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1"]
    options = ["--prior", str(tmp_path / "last.csv"), "--out", str(tmp_path / "o.spinney")]
    result = CliRunner().invoke(app, ["fit", *given, *options])
    assert result.exit_code == 0, result.output
    assert sp.load(tmp_path / "o.spinney").card.parameters["prior"]["rows"] == N


def test_engines_agree(tmp_path):
    """Private and public rows out of files give the release that the same rows in memory give."""
    PUBLIC.write_parquet(tmp_path / "last.parquet")
    PRIVATE.write_parquet(tmp_path / "now.parquet")
    made = []
    for frame, prior, engine in (
        (PRIVATE, PUBLIC, None),
        (tmp_path / "now.parquet", tmp_path / "last.parquet", None),
        (tmp_path / "now.parquet", PUBLIC.to_pandas(), "duckdb"),
        (PRIVATE.lazy(), PUBLIC.to_arrow(), None),
    ):
        model = sp.ForestSynthesizer("1", "1e-6", prior=prior, workload=[("town", "ill", "kids")])
        model.fit(frame, SCHEMA, entropy=sp.UnsafeSeededEntropy(2), engine=engine)
        made.append(model.sample(200, seed=1, frame="polars"))
    assert all(rows.equals(made[0]) for rows in made)


def test_places_rules_and_codes_go_with_a_prior():
    """Rows of a prior may break rules: no synthetic row does. Places and codes take part in pairs."""
    rng = np.random.default_rng(0)
    codes = [f"{a}{b}" for a in "ABCD" for b in range(12)]

    def rows(seed: int) -> pl.DataFrame:
        rng = np.random.default_rng(seed)
        start = rng.integers(0, 50, 3000)
        where = rng.normal(0.5, 0.1, 3000)
        frame = {"x": where, "y": where + rng.normal(0, 0.05, 3000), "code": rng.choice(codes, 3000)}
        return pl.DataFrame(frame | {"start": start, "end": start + rng.integers(0, 50, 3000)})

    schema = sp.Schema(
        {
            "x": sp.Real(0, 1),
            "y": sp.Real(0, 1),
            "code": sp.Category(codes, hierarchy=[1]),
            "start": sp.Integer(0, 99),
            "end": sp.Integer(0, 99),
        },
        rules=[sp.AtMost("start", "end")],
        places=[sp.Place("x", "y")],
    )
    breaking = rows(2).with_columns(start=pl.Series(rng.integers(0, 99, 3000)))
    for prior in (rows(2), breaking):
        model = sp.ForestSynthesizer("2", prior=prior, workload=[("start", "end")]).fit(rows(1), schema)
        assert model.release_.verify_contents()
        drawn = model.sample(1000, seed=0)
        assert (drawn["start"] <= drawn["end"]).all()


def test_the_private_table_is_not_its_own_prior(tmp_path):
    """Neither as the same object nor by the same path."""
    table = pl.DataFrame({"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50), "z": [True, False] * 25})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    table.write_parquet(tmp_path / "rows.parquet")
    for one, other in ((table, table), (tmp_path / "rows.parquet", str(tmp_path / "." / "rows.parquet"))):
        with pytest.raises(ParameterError, match="the private table itself"):
            sp.ForestSynthesizer("1", prior=one).fit(other, schema)


def test_a_release_that_is_not_private_is_no_prior():
    """Its guarantee is none, and a release with such a prior would not say so."""
    table = pl.DataFrame({"x": np.linspace(0, 1, 50), "y": np.linspace(0, 1, 50), "z": [True, False] * 25})
    open_schema = sp.Schema({"x": sp.Real(bounds="from-data-not-private"), "y": sp.Real(0, 1), "z": sp.Boolean()})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    earlier = sp.ForestSynthesizer("1").fit(table, open_schema)
    with pytest.raises(ParameterError, match="the release is not private"):
        sp.ForestSynthesizer("1", prior=earlier).fit(table.clone(), schema)
