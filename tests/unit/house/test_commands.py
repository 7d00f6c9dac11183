"""Every command of the contributors' pages and of the docs exists, takes the options it is shown with, and runs.

A command is a module of `benchmarks/` or `tools/` that can be run, or a goal of the Makefile. Each has a tiny run in
`support/tiny_runs.py`: a few of them are run here, all of them in `make test-long`. Before anything runs, no function
may use a local name before it has a value, which neither ruff nor mypy notices within a comprehension.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.scale import child, data

from support.tiny_runs import ELSEWHERE, FAST, TINY, tiny_data

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted(path for folder in ("benchmarks", "tools") for path in (ROOT / folder).rglob("*.py"))
COMMAND = re.compile(r"python (?:-m ((?:benchmarks|tools)[\w.]*)|(tools/\w+\.py))([^`#\n]*)")
GOAL = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.MULTILINE)


def module_of(path: Path) -> str:
    """How a runnable file is called: `benchmarks.scale`, `tools.gallery` or `tools/scale_page.py`."""
    place = path.relative_to(ROOT)
    if place.name == "__main__.py":
        return ".".join(place.parent.parts)
    return str(place) if place.parts[0] == "tools" else ".".join(place.with_suffix("").parts)


RUNNABLE = sorted(module_of(path) for path in SOURCES if '\nif __name__ == "__main__":' in path.read_text())


def documented() -> Iterator[tuple[str, str, str]]:
    """Page, module and what follows it, of every command that a page shows; decisions are history and left out."""
    for page in PAGES:
        if "decisions" not in page.parts:
            for module, tool, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
                yield page.name, (module or tool).rstrip("."), rest


def goals() -> dict[str, str]:
    """The goals of the Makefile with their recipes."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.findall(r"^([a-z][a-z-]*):(?!=).*\n((?:\t.*\n|\t.*\\\n)*)", text, re.MULTILINE)
    return dict(found)


def command_of(module: str) -> list[str]:
    return [sys.executable, *(["-m", module] if "/" not in module else [module])]


# ---------------------------------------------------------------------------------------------------- names with values


class Unbound(ast.NodeVisitor):
    """Loads of local names of one function that come before every line that gives them a value."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        given = function.args
        self.bound = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        self.bound |= {one.arg for one in (given.vararg, given.kwarg) if one is not None}
        self.local = _locals_of(function) - self.bound
        self.faults: list[str] = []
        for line in function.body:
            self.visit(line)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
        elif node.id in self.local - self.bound:
            self.faults.append(f"{node.id!r} in line {node.lineno}")

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        if node.value is not None:
            self.visit(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if node.value is not None:
                self.visit(target)

    visit_AnnAssign = visit_NamedExpr = visit_Assign

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    visit_AsyncFor = visit_For

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        before = set(self.bound)
        for one in node.generators:
            for part in (one.iter, one.target, *one.ifs):
                self.visit(part)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        own = {name.id for one in node.generators for name in ast.walk(one.target) if isinstance(name, ast.Name)}
        self.bound -= own - before

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) -> None:
        """What stands inside runs later; its name has a value from here on."""
        self.bound.add(getattr(node, "name", ""))

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def generic_visit(self, node: ast.AST) -> None:
        self.bound |= _names_given(node)
        super().generic_visit(node)


def _names_given(node: ast.AST) -> set[str]:
    """Names that a node gives a value to without an `ast.Name`."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {(one.asname or one.name).split(".")[0] for one in names}
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
        case ast.MatchMapping(rest=str(rest)):
            return {rest}
    return set()


def _locals_of(function: ast.AST) -> set[str]:
    """Names that belong to a function because it gives them a value."""
    found: set[str] = set()
    elsewhere: set[str] = set()
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            found |= _names_given(node)
            todo += ast.iter_child_nodes(node)
    return found - elsewhere


def unbound_names(source: str) -> list[str]:
    """Every local name that is used before it has a value, with its line."""
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [fault for one in functions for fault in Unbound(one).faults]


def test_no_function_uses_a_name_before_it_has_a_value() -> None:
    """Of benchmarks and tools: what would end a run after an hour is found before it begins."""
    assert len(SOURCES) > 100
    assert not {str(path.relative_to(ROOT)): found for path in SOURCES if (found := unbound_names(path.read_text()))}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ("times = [times(one) for one in range(3)]", ["'times' in line 2"]),
        ("x = x + 1", ["'x' in line 2"]),
        ("print(y)\n for y in range(3): pass", ["'y' in line 2"]),
        ("z: int = len({z: z for z in range(3)})\n return z", []),
        ("with open('a') as a: b = a\n return [b for c in b if (d := c)], d", []),
        ("try:\n  import os.path\n except OSError as err:\n  print(err)\n return os", []),
        ("global times\n times = times + 1", []),
        ("def inner(): return later\n later = 1\n return inner", []),
        ("match 3:\n  case [first, *rest]: print(first, rest)\n  case {'a': a, **others}: print(a, others)", []),
    ],
)
def test_a_name_without_a_value_is_noticed(body: str, faults: list[str]) -> None:
    assert unbound_names(f"def run():\n {body}\n") == faults


# ---------------------------------------------------------------------------------------------- what the pages show


def test_every_runnable_module_has_a_tiny_run() -> None:
    """A new benchmark or tool comes with one, and none is listed that is gone."""
    assert len(RUNNABLE) > 30
    assert sorted({*TINY, *ELSEWHERE}) == RUNNABLE
    assert all(ELSEWHERE.values()), "each says where it runs instead"


def test_every_command_of_the_pages_can_be_run() -> None:
    """What a page shows exists, and its options are those that the command's own text names."""
    found = list(documented())
    assert len(found) > 40
    for page, module, rest in found:
        assert module in RUNNABLE, f"{page} shows {module}, which cannot be run"
        known = _says_of_itself(module)
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest):
            assert option in known, f"{page} shows {module} {option}, which it does not take"


def test_every_goal_of_the_pages_is_in_the_makefile() -> None:
    """And every goal that runs a benchmark or a tool runs one that exists."""
    known = goals()
    shown = {goal for page in PAGES if "decisions" not in page.parts for goal in GOAL.findall(page.read_text())}
    commands = {goal for goal in shown if goal in CONTRIBUTORS_GOALS or goal in known}
    assert shown & CONTRIBUTORS_GOALS == CONTRIBUTORS_GOALS
    assert commands <= set(known), f"{sorted(commands - set(known))} are not in the Makefile"
    run = re.findall(r"python\)? (?:-m )?((?:benchmarks|tools)[\w./]*)", "".join(known.values()))
    assert len(run) > 15
    assert {one if one.startswith("tools/") else one.rstrip(".") for one in run} <= set(RUNNABLE)


CONTRIBUTORS_PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs/contribute/measuring.md"]
CONTRIBUTORS_GOALS = {
    goal for page in CONTRIBUTORS_PAGES for goal in re.findall(r"^make ([a-z-]+)", page.read_text(), re.MULTILINE)
}


def _says_of_itself(module: str) -> str:
    """The sources of a command: options are written there, parsed by hand or by argparse."""
    if "/" in module:
        return (ROOT / module).read_text(encoding="utf-8")
    path = ROOT / module.replace(".", "/")
    return (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def test_every_benchmark_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that the library has no more are noticed, whether a benchmark is run or not."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in SOURCES
        if path.name not in ("score.py", "commit_hook.py")  # of environments of their own: sdnist's, hatchling's
    ]
    assert len(names) > 90
    for name in names:
        importlib.import_module(name)


# ------------------------------------------------------------------------------------------------------------ tiny runs


@pytest.fixture
def place(workshop: Path) -> Path:
    """The workshop with the docs as they are committed: what one run put there must not reach the next."""
    shutil.rmtree(workshop / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", workshop / "docs")
    return workshop


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what commands read and write, the library linked, with made-up data in `data`."""
    folder = tmp_path_factory.mktemp("place")
    for name in ("benchmarks", "tools", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("src", "tests", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir()
    tiny_data(folder / "data")
    return folder


def run_tiny(place: Path, module: str, line: str) -> None:
    """A tiny run judges nothing: it may miss a target (1), and must end without an error; so must what comes after it.

    A step after a bar names its module first.
    """
    first, *others = line.split("|")
    steps = [(module, first.split()), *((name, rest) for name, *rest in (other.split() for other in others))]
    environment = os.environ | {"PYTHONPATH": str(place / "src"), "PYTHONWARNINGS": "ignore"}
    for name, arguments in steps:
        command = [*command_of(name), *arguments]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
        said = f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        assert not re.search(r"^(Traceback|error:|\w*Error)", done.stderr, re.MULTILINE), said
        assert done.returncode == 0 or (done.returncode == 1 and re.search("missed", done.stdout, re.IGNORECASE)), said


@pytest.mark.parametrize("module", FAST)
def test_a_command_runs_on_tiny_input(place: Path, module: str) -> None:
    """A few that take a second or two."""
    for line in FAST[module]:
        run_tiny(place, module, line)


def test_files_are_fitted_and_timed(tmp_path: Path) -> None:
    """What `benchmarks.scale` starts in processes of their own, in this one: files, cells and the model need it."""
    rows = data.write(tmp_path / "rows", data.clusters, 4_000, n_files=2)
    found = child.fit(rows, n_rows=4_000, rounds=2)
    assert 0 < found["seconds"] <= found["first"]
    assert child.extremes(rows, rounds=2).keys() >= {"seconds", "cpu", "first", "peak"}
    assert child.cells(rows) == {"cells": 4_000}


@pytest.mark.long
@pytest.mark.parametrize(("module", "line"), [(name, line) for name, lines in TINY.items() for line in lines])
def test_every_command_runs_on_tiny_input(place: Path, module: str, line: str) -> None:
    """Each command that anybody is shown ends without an error."""
    run_tiny(place, module, line)


@pytest.mark.parametrize("module", ["benchmarks", "benchmarks.scale"])
def test_a_command_explains_itself(module: str) -> None:
    """`--help` lists the options that the pages show."""
    done = subprocess.run([*command_of(module), "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = {option for _, one, rest in documented() if one == module for option in re.findall(r"--[a-z-]+", rest)}
    assert not [option for option in shown if option not in done.stdout]


@pytest.mark.long
@pytest.mark.parametrize("module", [one for one in RUNNABLE if "argparse" in _says_of_itself(one)])
def test_every_command_explains_itself(module: str) -> None:
    if module != "benchmarks.nist.score":  # of another environment
        test_a_command_explains_itself(module)
