"""Docs keep up with the code: names, verbs, links, proofs."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

import spinney
from spinney.cli.app import app
from support.in_one_test import in_one_test
from support.sources import nodes

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.proof.md")])
PROOFS = {
    "spinney/tree/grid.proof.md": "spinney/tree/kdtree.py",
    "spinney/tree/kdtree.proof.md": "spinney/tree/kdtree.py",
    "spinney/tree/empty.proof.md": "spinney/tree/kdtree.py",
    "spinney/tree/moments.proof.md": "spinney/tree/moments.py",
    "spinney/privacy/noise/gaussian.proof.md": "spinney/privacy/noise/gaussian.py",
    "spinney/privacy/noise/partitions.proof.md": "spinney/privacy/noise/choices.py",
    "spinney/privacy/noise/supnorm.proof.md": "spinney/privacy/noise/supnorm.py",
    "spinney_paper/baselines/balog.proof.md": "spinney_paper/baselines/balog.py spinney_paper/baselines/basis.py",
    "spinney_paper/baselines/vector.proof.md": "spinney_paper/baselines/vector.py",
    "spinney_paper/baselines/merf.proof.md": "spinney_paper/baselines/merf.py",
}
# Where noise is made; names that only compute with its laws; and files that need no proof, with the reason.
NOISE_ROOMS = {f"spinney.privacy.noise.{room}" for room in ("discrete", "choices", "gaussian", "supnorm")}
NOISE_ROOMS |= {"spinney_paper.baselines.vector"}
NOISE_CALLS = {"charge", "words"}
NO_NOISE = {
    *("SMALLEST_RATE", "SMALLEST_VARIANCE", "LARGEST_VARIANCE", "MOST_AXES", "arb_fraction", "as_integer"),
    *(
        "classical_variance",
        "delta_from_rho",
        "exp_of_minus",
        "exponentials",
        "keep_law",
        "least_variance",
        "scaled_bounds",
    ),
    "within_range",
}
NEED_NO_PROOF = {
    "spinney_audit/game.py": "tosses coins over made-up tables",
    "spinney/privacy/ledger.py": "is the account itself",
    "spinney/privacy/accounts/shared.py": "is the account itself",
    "spinney/synthesizers/paying.py": "adds up what a card says, in a ledger that nobody keeps",
    "spinney_paper/experiments/fraud_data.py": "tosses coins before a release; its docstring says what that costs",
}
STEP = re.compile(r"\[((?:\w+ )?step) \d+\]")


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


@in_one_test("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links in Markdown pages point to files that exist."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(("proof", "sources"), PROOFS.items())
def test_proof_steps_are_in_the_source(proof, sources):
    """A proof and its code name the same steps."""
    home = ROOT / "src"
    in_proof = {match.group() for match in STEP.finditer((home / proof).read_text())}
    (word,) = set(STEP.findall((home / proof).read_text()))  # of a proof among several of one file: "grid step"
    texts = [(home / source).read_text() for source in sources.split()]
    in_source = {match.group() for text in texts for match in STEP.finditer(text) if match.group(1) == word}
    assert in_proof
    assert in_proof == in_source


def proved_modules() -> set[Path]:
    """The modules that the proofs name as theirs, in the paragraph that begins with "Code:"."""
    proved = set()
    for proof in (ROOT / "src").rglob("*.proof.md"):
        (named,) = re.findall(r"^Code: .*?(?=\n\n)", proof.read_text(), re.MULTILINE | re.DOTALL)
        proved |= {(proof.parent / name).resolve() for name in re.findall(r"`([\w./]+\.py)`", named)}
    return proved


def noise_in(source: str) -> set[str]:
    """How a module charges a ledger, draws words, or gets at functions that draw."""
    found = set()
    for node in nodes(source, NOISE_CALLS | NOISE_ROOMS):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOISE_CALLS:
            found.add(f".{node.func.attr}()")
        if isinstance(node, ast.ImportFrom) and node.module in NOISE_ROOMS:
            found |= {alias.name for alias in node.names} - NO_NOISE
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & NOISE_ROOMS
    return found


def test_each_file_that_charges_or_draws_is_named_by_a_proof():
    """Whoever charges a ledger or draws noise, in any room, stands in a proof; those that are named exist."""
    proved = proved_modules()
    assert all(path.is_file() for path in proved), sorted(str(path) for path in proved if not path.is_file())
    noisy = {path for path in (ROOT / "src").rglob("*.py") if noise_in(path.read_text())}
    assert len(noisy) > 10
    unproved = noisy - proved - {ROOT / "src" / name for name in NEED_NO_PROOF}
    assert not unproved, {str(path.relative_to(ROOT)): noise_in(path.read_text()) for path in unproved}


@pytest.mark.parametrize(
    "sabotage",
    [
        "def f(books, charge):\n    books.charge(charge)\n",
        "from spinney.privacy.noise.discrete import add_noise\n",
        "def f(entropy):\n    return entropy.words(4)\n",
        "import spinney.privacy.noise.gaussian\n",
    ],
)
def test_a_charge_or_a_draw_is_noticed_however_it_is_written(sabotage):
    """The search would notice a new door; sums of laws that are only looked at are none."""
    assert noise_in(sabotage)
    assert not noise_in("from spinney.privacy.noise.discrete import arb_fraction\n")


CLAIMS = r"before (any |a )?counts? (is|are) read|before it reads a count|charge before touch|charges before counts"


def test_no_page_claims_that_counts_wait_for_the_charge():
    """Trees and grids count cells before they charge; what waits for the charge is the noise."""
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.parent.name != "forest"]  # where counts do wait
    claims = [path for path in [*PAGES, *sources] if re.search(CLAIMS, " ".join(path.read_text().lower().split()))]
    assert not claims
    assert re.search(CLAIMS, "charges it before any count is read")


def test_the_documented_targets_exist():
    """The README's make goals, and those of the contributors' pages, are in the Makefile."""
    goals = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = ("README.md", "CONTRIBUTING.md", "docs/contribute/measuring.md")
    text = "".join((ROOT / page).read_text() for page in pages)
    named = set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    assert {"demo", "test", "test-all", "test-lowest", "bench"} <= named
    assert named <= goals


def test_the_examples_in_docstrings_run():
    """Every `>>>` in the sources shows what really comes out."""
    n_examples = 0
    for path in sorted((ROOT / "src").rglob("*.py")):
        if ">>> " in path.read_text():
            name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            results = doctest.testmod(importlib.import_module(name))
            assert results.failed == 0, name
            n_examples += results.attempted
    assert n_examples > 5
