"""What an error says about an optional library can be typed, and works wherever Spinney came from."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from spinney.errors import MissingExtraError
from spinney.machine import OPTIONAL, load_optional
from support.in_one_test import in_one_test
from support.sources import nodes

ROOT = Path(__file__).parents[3]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
PLATFORMS = ("linux", "darwin", "win32")


def packages(extra: str, platform: str = sys.platform) -> set[str]:
    """What pip installs for an extra on a platform, extras of extras included."""
    found = set()
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "spinney":
            found |= {name for other in requirement.extras for name in packages(other, platform)}
        elif requirement.marker is None or requirement.marker.evaluate({"sys_platform": platform}):
            found.add(requirement.name)
    return found


def calls_of_load_optional() -> list[tuple[str, ast.Call]]:
    return [
        (path.name, node)
        for path in SOURCES
        for node in nodes(path.read_text(), ["load_optional"])
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_optional"
    ]


@in_one_test("module", OPTIONAL)
def test_the_extra_of_a_library_exists_and_brings_it(module: str) -> None:
    """Both remedies of the message install what is missing: the package, and the extra that is named."""
    package, extra = OPTIONAL[module]
    assert package in packages(extra)


def test_every_extra_that_a_call_names_exists() -> None:
    calls = calls_of_load_optional()
    named = {
        word.value.value: place
        for place, call in calls
        for word in call.keywords
        if word.arg == "extra" and isinstance(word.value, ast.Constant)
    }
    assert len(calls) > 8, "the calls are found at all"
    assert {"baselines", "paper"} <= set(named)
    assert set(named) <= set(EXTRAS)


def test_every_extra_is_hinted_at_or_documented() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    hinted = {extra for _, extra in OPTIONAL.values()}
    for extra in EXTRAS:
        assert extra in hinted or f"`{extra}`" in pages or f".[{extra}]" in pages, extra
        assert f"`{extra}`" in pages or f".[{extra}]" in pages, f"{extra} is on no page"


@pytest.mark.parametrize("module", OPTIONAL)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library comes first, because that command works in a checkout too; then the extra, and another way out."""
    monkeypatch.setitem(sys.modules, module, None)
    package, extra = OPTIONAL[module]
    with pytest.raises(MissingExtraError) as caught:
        load_optional(module, "this", otherwise="do without")
    assert str(caught.value) == (
        f"this needs {package}, which is not installed; pip install {package}, "
        f"or install Spinney with its extra {extra!r}, or do without"
    )


def test_the_package_is_named_as_pip_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sklearn` is a module; what pip installs under that name is something else."""
    for module in ("sklearn", "sklearn.linear_model"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install scikit-learn, .* extra 'baselines'"):
        load_optional("sklearn.linear_model", "a rival", extra="baselines")


def test_an_installed_library_is_handed_over() -> None:
    assert load_optional("pandas", "this").__name__ == "pandas"


def test_no_message_or_page_sends_anybody_to_an_index() -> None:
    """`pip install spinney[...]` fetches from a public index, where this package is not."""
    wrong = re.compile(r"install\s+['\"]?spinney\b")
    for path in [*SOURCES, *PAGES]:
        assert not wrong.search(path.read_text()), path.name


def test_all_imports_of_optional_libraries_go_through_one_door() -> None:
    """No file builds the message by itself, but where what is wanted cannot be installed beside Spinney."""
    for path in SOURCES:
        if path.name not in ("machine.py", "errors.py", "sums.py", "attacks.py"):
            assert "MissingExtraError(" not in path.read_text(), path.name


@pytest.mark.parametrize("extra", ["classify", "paper"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_classifiers_bring_no_cuda(extra: str, platform: str) -> None:
    """On Linux xgboost is the build without CUDA; elsewhere the usual one has none."""
    wanted = "xgboost-cpu" if platform == "linux" else "xgboost"
    assert {name for name in packages(extra, platform) if name.startswith("xgboost")} == {wanted}


def test_the_build_without_cuda_is_imported_by_the_same_name() -> None:
    pytest.importorskip("xgboost")
    assert hasattr(load_optional("xgboost", "this"), "XGBClassifier")


def installed_by(page: str) -> set[str]:
    """The packages that the `pip install` commands of a page bring, besides Spinney's own dependencies."""
    found: set[str] = set()
    for command in re.findall(r"pip install ([^`\n]+)", page):
        for word in command.replace('"', "").replace("'", "").split():
            extras = re.match(r"\.\[([a-z,]+)\]", word)
            found |= {package for extra in extras[1].split(",") for package in packages(extra)} if extras else {word}
    return found


def test_the_readme_installs_what_it_imports() -> None:
    page = (ROOT / "README.md").read_text()
    imported = set(re.findall(r"^(?:import|from) (\w+)", page, re.MULTILINE)) & set(OPTIONAL)
    assert imported
    assert {OPTIONAL[module][0] for module in imported} <= installed_by(page)


def test_install_commands_of_pages_are_understood() -> None:
    assert installed_by('`pip install ".[polars,plot]"` or `pip install duckdb`') == {"polars", "matplotlib", "duckdb"}
