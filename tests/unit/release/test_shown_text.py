"""Text out of release files never writes on the terminal: names, notes, plans and remarks are shown as escapes."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from support.command_line import spinney

EVIL = "\x1b]0;owned\x07\x9b2J\u202eevil\u2066\r\n  guarantee   0-differential privacy"


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """A release whose column names, categories and prefixes try to write on the terminal."""
    rng = np.random.default_rng(0)
    schema = sp.Schema({f"a{EVIL}": sp.Category(["x", f"y{EVIL}"]), "b": sp.Real(0, 1), f"c{EVIL}": sp.Boolean()})
    table = pa.table(
        {
            f"a{EVIL}": rng.choice(["x", f"y{EVIL}"], 500),
            "b": rng.random(500),
            f"c{EVIL}": rng.random(500) < 0.5,
        }
    )
    path = tmp_path_factory.mktemp("evil") / "evil.spinney"
    model = sp.ForestSynthesizer(5, target=f"c{EVIL}").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1))
    model.save(path)
    return path


def is_harmless(text: str) -> bool:
    forged = any(line.startswith("  guarantee   0-differential") for line in text.splitlines())
    return not forged and all(c == "\n" or c.isprintable() for c in text)


@pytest.mark.parametrize("verb", [["card"], ["explain"], ["verify"], ["card", "--json"], ["explain", "--json"]])
def test_names_do_not_write_on_the_terminal(evil, verb):
    """Escapes, marks of direction and line breaks are shown as escapes; JSON still says the name."""
    run = spinney(verb[0], evil, *verb[1:])
    assert run.status == 0
    assert is_harmless(run.out)
    assert is_harmless(run.err)
    if verb == ["card", "--json"]:
        assert f"a{EVIL}" in run.json["schema"]["columns"]


def test_no_text_of_a_forged_card_writes_on_the_terminal(evil, tmp_path):
    """Notes, the plan, parameters and remarks may hold anything in a forged file: it is shown as escapes."""
    with zipfile.ZipFile(evil) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(members["card.json"])
    card = described["card"]
    for event in card["events"]:
        for noted in (event, *event.get("parts", [])):
            noted["note"] += EVIL
    card.pop("warnings")  # which repeat the notes
    card["plan"][f"a{EVIL}"] = card["parameters"][EVIL] = EVIL
    card["remarks"] = [EVIL]
    with zipfile.ZipFile(tmp_path / "forged.spinney", "w") as archive:
        for name, content in (members | {"card.json": json.dumps(described).encode()}).items():
            archive.writestr(name, content)
    release = sp.load(tmp_path / "forged.spinney")
    for verb in (["card"], ["card", "--json"], ["verify"], ["explain"], ["sample", "--rows", "0", "--out", "-"]):
        run = spinney(verb[0], tmp_path / "forged.spinney", *verb[1:])
        assert is_harmless(run.out) or verb[0] == "sample"  # a CSV has its names as they are
        assert is_harmless(run.err)
    for shown in (str(release.card), repr(release), release.card.essentials, release.card.to_json()):
        assert is_harmless(shown)


def test_python_shows_names_as_escapes_too(evil):
    """print(card), the explanation and the reprs are as harmless."""
    release = sp.load(evil)
    for shown in (str(release.card), repr(release.card), repr(release), str(release.explain()), release.card.to_json()):
        assert is_harmless(shown)


def test_errors_do_not_write_on_the_terminal(evil, tmp_path):
    """A message that names a column or a file is escaped on its way out."""
    for arguments in (
        ["sample", evil, "--out", tmp_path / "x.csv", "--where", f"a{EVIL}=zz"],
        ["sample", evil, "--out", tmp_path / f"x{EVIL}.txt"],
        ["card", tmp_path / f"absent{EVIL}"],
        ["sample", evil, "--out", tmp_path / "x.csv", "--where", f"a{EVIL}=zz", "--json"],
    ):
        run = spinney(*arguments)
        assert run.status != 0
        assert is_harmless(run.err)
