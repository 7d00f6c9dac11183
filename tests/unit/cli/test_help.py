"""Help is quick, has examples and agrees with the reference page."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from spinney.cli.app import app
from spinney.cli.command import Option, Verb
from spinney.files import full_version
from support.command_line import spinney
from support.in_one_test import in_one_test

ROOT = Path(__file__).parents[3]
VERBS = [
    *(
        "schema",
        "check",
        "plan",
        "fit",
        "sample",
        "ask",
        "card",
        "verify",
        "sign",
        "keygen",
        "explain",
        "picture",
        "report",
        "compare",
        "audit",
        "ledger",
        "studio",
        "demo",
        "warm-up",
        "paper",
    ),
]


# Groups of verbs, by the words that name a verb.
CALLS = [
    *((verb,) for verb in VERBS),
    *(("ledger", verb) for verb in app.commands["ledger"].commands),  # type: ignore[attr-defined]
]


def command_of(call: tuple[str, ...]) -> click.Command:
    """The command that words name."""
    command: click.Command = app
    for word in call:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return command


each_call = in_one_test("call", CALLS)


def test_all_verbs_are_there_in_the_order_of_their_use() -> None:
    run = spinney("--help")
    assert run.status == 0
    assert list(app.commands) == VERBS
    assert "\b" not in run.out.replace("\\b", "\b"), "the overview is laid out, not shown with its markup"
    places = [run.out.rindex(f"\n  {verb} ") for verb in VERBS]
    assert places == sorted(places)


@each_call
def test_help_ends_with_examples(call: tuple[str, ...]) -> None:
    run = spinney(*call, "--help")
    assert run.status == 0
    examples = run.out.split("Examples:\n")[1].strip().splitlines()
    named = " ".join(word for word in call if word != "account")  # the verb that need not be named
    assert all(f"spinney {named}" in line for line in examples)


@each_call
def test_examples_can_be_parsed(call: tuple[str, ...]) -> None:
    """Every example is a call that the verb's own parser accepts, file names aside."""
    command = command_of(call)
    if isinstance(command, click.Group):
        return  # its examples are those of its verbs
    assert isinstance(command, Verb)
    assert command.examples
    verb = call[-1] if call[-1] != "account" else call[0]
    for line in command.examples:
        words = shlex.split(line)
        start = words.index(verb) + 1
        stop = words.index("|", start) if "|" in words[start:] else len(words)
        parser = command.make_parser(click.Context(command))
        values, rest, _ = parser.parse_args(words[start:stop])
        assert rest == []
        for parameter in command.params:
            assert not parameter.required or parameter.name in values


@each_call
def test_help_is_one_screen(call: tuple[str, ...]) -> None:
    """Of 45 lines at 100 columns."""
    ctx = click.Context(command_of(call), info_name=" ".join(call), terminal_width=100)
    lines = ctx.get_help().splitlines()
    assert len(lines) <= 45
    assert all(len(line) <= 100 for line in lines[: lines.index("Examples:")])


@pytest.mark.parametrize("verb", ["schema", "plan", "fit", "sample", "ask", "report"])
def test_all_of_the_help_is_one_option_further(verb: str) -> None:
    """In groups, with all options, paragraphs and examples; errors and completion know all options anyway."""
    command = app.commands[verb]
    assert isinstance(command, Verb)
    first, whole = spinney(verb, "--help").out, spinney(verb, "--help-all").out
    told = " ".join(whole.split())
    names = [each.opts[0] for each in command.params if isinstance(each, click.Option)]
    groups = {each.group for each in command.params if isinstance(each, Option) and each.group}
    assert groups
    assert all(f"\n{group}:\n" in whole and f"\n{group}:\n" not in first for group in groups)
    assert all(name in told for name in names)
    assert not all(f"\n  {name}" in first for name in names)
    assert all(example in whole for example in command.examples)
    assert all(" ".join(paragraph.split()) in told for paragraph in (command.help or "").split("\n\n"))


def test_completion_offers_options_that_the_first_screen_leaves_out() -> None:
    """And their values."""

    def offered(*words: str, start: str) -> list[str]:
        found = ShellComplete(app, {}, "spinney", "_SPINNEY_COMPLETE").get_completions(list(words), start)
        return [each.value for each in found]

    assert {"--delimiter", "--date-format", "--decimal", "--delta"} <= set(offered("fit", start="--d"))
    assert offered("fit", "--rule", start="") == ["privtree", "paper"]
    assert "--no-moments" in offered("fit", start="--no")
    assert "did you mean" in spinney("fit", "--delimeter", ";").err.lower()


def test_every_option_has_help() -> None:
    ledger = app.commands["ledger"]
    assert isinstance(ledger, click.Group)
    for verb in [*app.commands.values(), *ledger.commands.values()]:
        for parameter in verb.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), parameter


def test_version() -> None:
    assert spinney("--version").out == f"spinney {full_version()}\n"


def test_a_call_without_a_verb_shows_help() -> None:
    run = spinney()
    assert run.status == 2
    assert "Commands:" in run.err


def test_the_reference_page_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "cli_page.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_stale_reference_page_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "cli_page.py").write_text((ROOT / "tools" / "cli_page.py").read_text())
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "docs" / "reference" / "cli.md").write_text("old")
    done = subprocess.run(
        [sys.executable, tmp_path / "tools" / "cli_page.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "make docs" in done.stderr


# ------------------------------------------------------------------------------------------------- start-up time

HEAVY = ("numpy", "pyarrow", "numba", "flint", "narwhals", "matplotlib", "tqdm", "tomlkit", "pandas", "polars")


@pytest.mark.parametrize("module", ["spinney", "spinney.cli"])
def test_heavy_imports_wait_until_they_are_needed(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "budget"), [(["-c", "import spinney"], 0.25), (["-m", "spinney", "--help"], 0.5)]
)
def test_start_up_is_quick(arguments: list[str], budget: float) -> None:
    """Within three times the budget, so that a busy machine passes and an eager import of numba (a second) does not."""

    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 3 * budget
