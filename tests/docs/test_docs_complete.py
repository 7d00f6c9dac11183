"""Docs keep up with the code: names, verbs, links, proofs."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import spinney
from spinney.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.proof.md")])
PROOFS = {
    "partition/grid.proof.md": "partition/grid.py",
    "partition/kdtree.proof.md": "partition/kdtree.py",
    "partition/empty.proof.md": "partition/empty.py",
    "partition/moments.proof.md": "partition/moments.py",
    "privacy/gaussian.proof.md": "privacy/gaussian.py",
    "privacy/supnorm.proof.md": "privacy/supnorm.py",
    "baselines/balog.proof.md": "baselines/balog.py baselines/basis.py",
    "baselines/merf.proof.md": "baselines/merf.py",
}
STEP = re.compile(r"\[step \d+\]")


def test_every_public_name_is_documented():
    """Each name of the public door stands in the library reference."""
    reference = (ROOT / "docs/reference/library.md").read_text()
    missing = [name for name in spinney.__all__ if f"`sp.{name}`" not in reference]
    assert not missing


def test_every_verb_is_documented():
    """Each verb of the command line has a section in the reference."""
    reference = (ROOT / "docs/reference/cli.md").read_text()
    missing = [verb for verb in app.commands if f"## `spinney {verb}`" not in reference]
    assert app.commands
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links in Markdown pages point to files that exist."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(("proof", "sources"), PROOFS.items())
def test_proof_steps_are_in_the_source(proof, sources):
    """A proof and its code name the same steps."""
    home = ROOT / "src/spinney"
    in_proof = set(STEP.findall((home / proof).read_text()))
    in_source = {step for source in sources.split() for step in STEP.findall((home / source).read_text())}
    assert in_proof
    assert in_proof == in_source


def test_each_mechanism_has_a_proof():
    """Every module that charges a ledger has a proof beside it or names the one it rests on."""
    home = ROOT / "src/spinney"
    for module in [*home.glob("partition/*.py"), *home.glob("baselines/*.py")]:
        if any(call in module.read_text() for call in ("ledger.charge(", "release_grid(", "= release_vector(")):
            beside = module.with_suffix("").with_suffix(".proof.md")
            assert beside.exists() or "its proof is the grid's" in module.read_text(), module.name


def test_the_documented_targets_exist():
    """The README's make goals, and those of the contributing page, are in the Makefile."""
    goals = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"^make ([a-z]+)", text, re.MULTILINE))
    assert {"demo", "test", "bench"} <= named
    assert named <= goals


def test_the_examples_in_docstrings_run():
    """Every `>>>` in the sources shows what really comes out."""
    n_examples = 0
    for path in sorted((ROOT / "src/spinney").rglob("*.py")):
        if ">>> " in path.read_text():
            name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            results = doctest.testmod(importlib.import_module(name))
            assert results.failed == 0, name
            n_examples += results.attempted
    assert n_examples > 5
