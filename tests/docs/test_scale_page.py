"""The page about size shows what was measured, missed targets included."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale_page", ROOT / "tools" / "scale_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_results() -> None:
    """`make page` would change nothing."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "scale_page.py", "--check"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_missed_target_is_called_missed() -> None:
    """Every judged line is shown, and those beyond what was wanted in bold."""
    lines = [
        {"what": "memory", "measured": 1.5, "wanted": 2.5, "unit": "GiB"},
        {"what": "time", "measured": 4.5, "wanted": 2, "unit": "x"},
    ]
    text = page().results_part({"figures": {}, "results": lines})
    assert "| memory | 1.5 GiB | at most 2.5 GiB | met |" in text
    assert "| time | 4.5 x | at most 2 x | **missed** |" in text


def test_other_figures_make_another_page() -> None:
    """A page without the markers is refused; one with them takes what it is given."""
    module = page()
    text = f"before\n{module.START}old\n{module.END}\nafter\n"
    made = module.with_results(text, {"figures": {}, "results": []})
    assert made.startswith("before\n")
    assert made.endswith(f"{module.END}\nafter\n")
    assert "old" not in made
