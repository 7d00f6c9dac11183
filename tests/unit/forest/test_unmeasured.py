"""A file that says that something was not measured holds of it what the schema gives, or is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.forest.release.verify import _is_independent
from support.command_line import spinney

N_ROWS = 3000


def table() -> pa.Table:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 3, N_ROWS)
    start = rng.integers(0, 40, N_ROWS)
    return pa.table(
        {
            "lat": rng.normal(48, 0.2, N_ROWS).clip(47, 49),
            "lon": rng.normal(11, 0.2, N_ROWS).clip(10, 12),
            "kind": np.array(["a", "b", "c"])[kind],
            "word": np.array(["x", "y", "z"])[kind],
            "size": pa.array(rng.exponential(20, N_ROWS).clip(0, 500), mask=rng.random(N_ROWS) < 0.1),
            "start": start,
            "end": start + rng.integers(0, 50, N_ROWS),
            "label": kind > 0,
        }
    )


COLUMNS = {
    "lat": sp.Real(47, 49),
    "lon": sp.Real(10, 12),
    "kind": sp.Category(["a", "b", "c"]),
    "word": sp.Category(values="private"),
    "size": sp.Real(0, 500, nullable=True),
    "start": sp.Integer(0, 99),
    "end": sp.Integer(0, 99),
    "label": sp.Boolean(),
}
RULES = [
    sp.AtMost("start", "end"),
    sp.Implies(when={"kind": "a"}, then={"label": False}),
    sp.Implies(when={"label": True}, then={"kind": ["b", "c"], "size": [(0, 100), None]}),
]
PLACES = [sp.Place("lat", "lon")]


def saved(path: Path, epsilon: str, *, rules=(), places=PLACES, **parameters) -> Path:
    """A forest of the table; where there is too little epsilon to find values, they are listed."""
    columns = COLUMNS if float(epsilon) >= 1 else COLUMNS | {"word": sp.Category(["x", "y", "z"])}
    schema = sp.Schema(columns, rules=list(rules), places=list(places))
    model = sp.ForestSynthesizer(epsilon, **parameters).fit(table(), schema, entropy=sp.UnsafeSeededEntropy(1))
    model.save(path)
    return path


def forged(path: Path, change) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(members["card.json"])
    change(card, card["card"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (members | {"card.json": json.dumps(card).encode()}).items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())
    return path


def refused(path: Path) -> str:
    with pytest.raises(FileError, match="inconsistent") as caught:
        sp.load(path)
    run = spinney("verify", path)
    assert run.status != 0
    return str(caught.value)


def for_nothing(described, card) -> None:
    """All that tells of a charge is taken out."""
    card["events"] = [event for event in card["events"] if "epsilon" not in event]
    card["epsilon"] = card["delta"] = "0"
    card["groups"] = []
    described["looked_at"] = []
    card["plan"] = {"structure": "uniform", "rule": "forest", "unit": "replace-one"}
    card["parameters"].pop("values_share", None)


# ------------------------------------------------------------------------------------------------------- forgeries


@pytest.mark.parametrize("places", [PLACES, []], ids=["a place", "no place"])
def test_a_forest_of_data_is_not_taken_for_one_that_cost_nothing(tmp_path, places):
    """Leaves, regions and tables of a real fit are none that the schema gives."""
    path = forged(saved(tmp_path / "a.spinney", "1", places=places), for_nothing)
    refused(path)


def rewritten(path: Path, member: str, change) -> Path:
    """The same file with one table of it changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = pa.ipc.open_file(members[member]).read_all()
    sink = io.BytesIO()
    changed = change(content)
    with pa.ipc.new_file(sink, changed.schema) as writer:
        writer.write_table(changed)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in (members | {member: sink.getvalue()}).items():
            archive.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return path


def uneven_weights(leaves: pa.Table) -> pa.Table:
    weights = leaves["weights"].to_numpy().copy()
    at = leaves["column"].combine_chunks().cast(pa.string()).to_pylist().index("kind")
    weights[at : at + 2] += [5, -5]
    return leaves.set_column(leaves.schema.get_field_index("weights"), "weights", pa.array(weights))


def uneven_potentials(model: pa.Table) -> pa.Table:
    cliques, potentials = model["clique"].to_pylist(), model["potentials"].to_pylist()
    at = next(place for place, clique in enumerate(cliques) if clique == [1])
    potentials[at][0] -= 1.0
    column = pa.array(potentials, pa.list_(pa.float64()))
    return model.set_column(model.schema.get_field_index("potentials"), "potentials", column)


@pytest.mark.parametrize(
    ("member", "change", "match"),
    [("leaves.arrow", uneven_weights, "leaves of 'kind'"), ("model.arrow", uneven_potentials, "states of 'kind'")],
)
def test_one_number_of_an_empty_forest_is_changed(tmp_path, member, change, match):
    """Weights of leaves and shares of states are those of the schema alone."""
    path = saved(tmp_path / "a.spinney", "1e-5")
    sp.load(path)
    assert match in refused(rewritten(path, member, change))


def alone(described, card) -> None:
    """What was counted together is said not to have been."""
    described["looked_at"] = []
    plan = card["plan"]
    plan["structure"] = "independent"
    for entry in ("cliques noise", "pairs noise", "epsilon of a choice"):
        plan.pop(entry, None)
    for event in card["events"]:
        if "parts" in event:
            event["parts"] = [part for part in event["parts"] if part["stage"] not in ("cliques", "pairs", "selection")]


@pytest.mark.parametrize("target", [None, "label"])
@pytest.mark.parametrize("rules", [[], RULES], ids=["no rules", "rules"])
def test_tables_that_were_not_counted_are_not_in_the_model(tmp_path, target, rules):
    """Columns are joined where they were counted together, or where a rule joins them."""
    path = forged(saved(tmp_path / "a.spinney", "3", rules=rules, target=target), alone)
    assert "counted together" in refused(path)


def test_with_a_target_other_pairs_are_not_in_the_model(tmp_path):
    """The structure of a target counts pairs with it, and no others."""

    def change(described, card) -> None:
        card["plan"]["structure"] = "target"
        described["looked_at"] = [names for names in described["looked_at"] if len(names) == 2]

    path = forged(saved(tmp_path / "a.spinney", "3", target="label"), change)
    assert "counted together" in refused(path)


def test_what_a_rule_joins_is_independent_otherwise():
    """Numbers for each state add up, and minus infinity stands only where no row can be."""
    sums = np.arange(4.0)[:, None] + np.sqrt(np.arange(6.0))[None, :]
    impossible = np.arange(4)[:, None] > np.arange(6)[None, :]
    cut = np.where(impossible, -np.inf, sums)
    assert _is_independent(sums, impossible)
    assert _is_independent(cut, impossible)
    assert not _is_independent(cut, np.zeros_like(impossible))
    bent = cut.copy()
    bent[1, 4] += 0.01
    assert not _is_independent(bent, impossible)


# ------------------------------------------------------------------------------------------------------ what is true


@pytest.mark.parametrize("target", [None, "label"])
@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rules", [[], RULES], ids=["no rules", "rules"])
@pytest.mark.parametrize("epsilon", ["1e-5", "0.05", "0.2", "3"])
def test_what_fits_save_is_believed(tmp_path, target, unit, rules, epsilon):
    """Every structure, with rules and without, with private values, places and nulls."""
    path = saved(tmp_path / "a.spinney", epsilon, rules=rules, target=target, unit=unit)
    release = sp.load(path)
    assert len(release.sample(5)) == 5
