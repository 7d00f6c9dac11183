"""README and docs are executed: a snippet that does not run is a bug."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from spinney.columns import Category
from spinney.demo_data import make_town
from spinney.schema.schema import Schema
from support.command_line import spinney
from support.long import IS_LONG

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
HAS_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ
NEEDS_JAVA = pytest.mark.skipif(not HAS_JAVA, reason="Spark needs Java, which was not found")
FENCE = re.compile(r"(?:<!-- runs: (?P<runs>[^>]+?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL)


# Runs snippets one after the other, each in an empty folder and a namespace of its own, with warnings as errors, but
# what noise says of small tables.
RUNNER = """
import json, os, sys, warnings
from spinney.errors import SchemaWarning

for number, (name, text) in enumerate(json.load(sys.stdin).items()):
    os.makedirs(f"../{number}")
    os.chdir(f"../{number}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        exec(compile(text, name, "exec"), {"__name__": "__main__"})
"""


# How many processes share the snippets of all other pages: each takes seconds to begin.
N_PROCESSES = 7
# An audit plays for as long as it is told: two seconds are too short to prove much, and enough to see that it runs.
AUDIT = re.compile(r"(spinney audit .*--seconds) \d+")
# Pages whose snippets `make test` runs: what a new user types first. Those of all others are long.
IN_A_SHELL = "docs/start/first-release.md"
FIRST_PAGES = ("README.md", "docs/index.md", "docs/start/", "docs/how-to/schema.md")


def python_snippets(*, java: bool) -> dict[str, str]:
    """The marked Python snippets of all pages by their names: those that need Java, or all others."""
    found = {}
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for index, match in enumerate(FENCE.finditer(page.read_text())):
            runs = match["runs"] or ""
            if runs and match["language"] == "python" and not runs.startswith("file ") and ("Java" in runs) == java:
                found[f"{name}#{index}"] = match["text"]
    return found


def shared_out() -> list:
    """The snippets for each process, named by their pages: the first pages by themselves."""
    found = python_snippets(java=False)
    first = {name: text for name, text in found.items() if name.startswith(FIRST_PAGES)}
    others = [(name, text) for name, text in found.items() if name not in first]
    ends = [len(others) * k // N_PROCESSES for k in range(N_PROCESSES + 1)]
    parts = [first, *(dict(others[begin:end]) for begin, end in pairwise(ends))]
    return [
        pytest.param(part, id=" ".join(dict.fromkeys(name.split("#")[0] for name in part)), marks=marks_of([*part]))
        for part in parts
    ]


def marks_of(names: list[str]) -> list:
    """Pages that are not among the first are long."""
    return [] if all(name.startswith(FIRST_PAGES) for name in names) else [pytest.mark.long]


@pytest.mark.parametrize("texts", shared_out())
def test_python_snippets_run(texts, tmp_path):
    """Every Python snippet runs by itself, in a folder and a namespace of its own; a few share a process."""
    folder = tmp_path / "first"
    folder.mkdir()
    command = [sys.executable, "-W", "error", "-c", RUNNER]
    run = subprocess.run(command, cwd=folder, input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(list(tmp_path.iterdir())) == len(texts) + 1, "all of them ran"


@pytest.mark.long
@NEEDS_JAVA
def test_python_snippets_run_on_spark(tmp_path):
    test_python_snippets_run(python_snippets(java=True), tmp_path)


def test_a_snippet_that_fails_is_named(tmp_path):
    """Also where it relies on names of the one before it, or warns."""
    for wrong in ("x", "import warnings; warnings.warn('old', DeprecationWarning)"):
        folder = tmp_path / str(len(wrong))
        folder.mkdir()
        with pytest.raises(AssertionError, match="second#1"):
            test_python_snippets_run({"first#0": "x = 1", "second#1": wrong}, folder)


def make_adult(n_rows: int) -> list[str]:
    """MADE-UP lines as the published files of Adult have them: no header, blanks after commas, income by education."""
    rng = np.random.default_rng(0)
    schema = Schema.from_file(ROOT / "examples/adult.toml")
    columns = {
        name: rng.choice(column.values, n_rows)
        if isinstance(column, Category)
        else rng.integers(column.low, column.high, n_rows, endpoint=True)
        for name, column in schema.items()
    }
    is_rich = rng.random(n_rows) < columns["education-num"] / 16
    columns["income"] = np.where(is_rich, ">50K", "<=50K")
    return [", ".join(map(str, row)) for row in zip(*columns.values(), strict=True)]


def shell_pages() -> list:
    """For every page with marked shell snippets, what to do in order: ("sh", text) or (file name, text).

    A page whose commands all stand on pages before it is long: they run once in `make test`.
    """
    pages: list = []
    shown: set[str] = set()
    for page in PAGES:
        steps = []
        for match in FENCE.finditer(page.read_text()):
            runs = match["runs"] or ""
            if match["language"] == "sh" and runs:
                steps.append(("sh", match["text"]))
            elif runs.startswith("file "):
                steps.append((runs.removeprefix("file "), match["text"]))
        if steps:
            name, lines = str(page.relative_to(ROOT)), {line for kind, text in steps for line in text.splitlines()}
            pages.append(pytest.param(steps, id=name, marks=pytest.mark.long if lines <= shown else marks_of([name])))
            shown |= lines
    return pages


NEEDS_A_SHELL = re.compile(r"[$*\\]|(?<!\S)[|&;<>()]+(?!\S)")


def commands(text: str) -> list:
    """A snippet in parts: our commands that need nothing of a shell, as their arguments, and the text between them."""
    parts: list = []
    for line in text.splitlines():
        words = shlex.shlex(line if line.startswith("spinney ") else "", posix=True, punctuation_chars=True)
        words.whitespace_split = True
        arguments = list(words)
        if arguments and not NEEDS_A_SHELL.search(" ".join(arguments)):
            parts.append(arguments[1:])
        elif parts and isinstance(parts[-1], str):
            parts[-1] += line + "\n"
        else:
            parts.append(line + "\n")
    return parts


def test_commands_that_need_a_shell_are_left_to_it():
    """Comments and quotes are read as a shell reads them."""
    parts = {
        "x=1\n(echo $x)\n": "x=1\n(echo $x)\n",
        "spinney fit a.csv --note 'b  c'   # why\n": ["fit", "a.csv", "--note", "b  c"],
        "spinney check a || true\n": "spinney check a || true\n",
        'spinney ask a "mean(x) by y"\n': ["ask", "a", "mean(x) by y"],
        "spinney card $x\n": "spinney card $x\n",
    }
    assert commands("".join(parts)) == list(parts.values())


@pytest.mark.parametrize("steps", shell_pages())
def test_shell_snippets_run(steps, tmp_path, monkeypatch, request):
    """The marked shell snippets of a page run in order, in a folder with town.csv, Adult as published, and examples.

    In `make test`, a shell runs those of one page, and the commands of others run in this process, where nothing has to
    be imported anew.
    """
    monkeypatch.chdir(tmp_path)
    lines = ["x,y", *(f"{x},{y}" for x, y in make_town())]
    (tmp_path / "town.csv").write_text("\n".join(lines) + "\n")
    adult = make_adult(6_000)
    (tmp_path / "adult.data").write_text("\n".join(adult[:5_000]) + "\n\n")
    (tmp_path / "adult.test").write_text(
        "\n".join(["|1x3 Cross validator", *(f"{one}." for one in adult[5_000:])]) + "\n\n"
    )
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for kind, text in steps:
        if kind != "sh":
            (tmp_path / kind).write_text(text)
            continue
        is_whole = IS_LONG or IN_A_SHELL in request.node.name
        for part in [text] if is_whole else commands(AUDIT.sub(r"\1 2", text)):
            if isinstance(part, list):
                done = spinney(*part)
                assert done.status == 0, done.err
                continue
            run = subprocess.run(
                ["bash", "-eu", "-c", part],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PATH": path},
            )
            assert run.returncode == 0, run.stderr
    written = [*tmp_path.glob("synthetic.parquet"), *tmp_path.glob("synthetic/*.parquet")]
    assert written
    assert all(path.stat().st_size > 0 for path in written)


def test_every_snippet_is_marked():
    """No Python snippet and no call of the command escapes execution."""
    for page in PAGES:
        if page.name == "cli.md":
            continue  # generated; its examples are parsed by the tests of the command's help
        for match in FENCE.finditer(page.read_text()):
            is_ours = match["language"] == "python" or (match["language"] == "sh" and "spinney " in match["text"])
            assert not is_ours or match["runs"], f"an unmarked snippet in {page.name}"


def test_the_readme_has_snippets():
    """The markers are found at all: a wrong pattern would make the tests above pass on nothing."""
    assert python_snippets(java=True)
    names = [*python_snippets(java=False), *(page.id for page in shell_pages())]
    assert sum(name.startswith("README.md") for name in names) == 2
    assert {"docs/start/first-release.md", "docs/start/real-table.md"} <= set(names)
    kept = [one.id for one in (*shared_out(), *shell_pages()) if not one.marks]
    assert "README.md" in " ".join(kept)
    assert "README.md" in kept or "docs/start/first-release.md" in kept, "the shell is used too"
    assert sorted(name for part in shared_out() for name in part.values[0]) == sorted(python_snippets(java=False))
