"""The page about size shows what was measured, missed targets included."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.scale.__main__ import Benchmark, keep

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


def test_other_figures_make_another_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without the markers is refused; one with them takes what it is given, and when it was measured."""
    module = page()
    monkeypatch.setattr(module, "PAGE", tmp_path / "scale.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    module.PAGE.write_text(f"before\n{module.START}old\n<!-- end of results -->\nafter\n")
    spark = {"rows": 10**7, "seconds": 10.0, "query": 5.0}
    module.RESULTS.write_text(json.dumps({"figures": {"spark": spark, "rows": 1}, "results": []}))
    module.main([])
    made = module.PAGE.read_text()
    assert made.startswith("before\n")
    assert made.endswith("<!-- end of results -->\nafter\n")
    assert "old" not in made
    assert "Measured before dates were kept." in made
    for measured, said in (
        ({"spark": "2026-11-18 0.1.0+gabc"}, "Measured on 2026-11-18 with version 0.1.0+gabc: `spark`."),
        ({"files": "2026-11-18 0.1.0"}, "Measured before dates were kept: `spark`."),
        ("2026-11-18 0.1.0", "Measured on 2026-11-18 with version 0.1.0."),
    ):
        module.RESULTS.write_text(json.dumps({"figures": {"spark": spark}, "results": [], "measured": measured}))
        module.main([])
        assert said in module.PAGE.read_text()
    module.PAGE.write_text("no markers")
    with pytest.raises(SystemExit, match="lost its markers"):
        module.main([])


def test_a_run_says_when_it_was_measured(tmp_path: Path) -> None:
    """Only parts that ran are dated anew."""
    benchmark = Benchmark(tmp_path, 10)
    (tmp_path / "results.json").write_text(json.dumps({"figures": {"spark": {}}, "results": []}))
    benchmark.figures["files"] = {}
    keep(tmp_path / "results.json", benchmark)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert set(kept["measured"]) == {"files"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d+\.\d+\.\d+\S*", kept["measured"]["files"])
