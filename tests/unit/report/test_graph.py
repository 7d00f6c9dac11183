"""The picture of a forest joins the columns that were counted together, and the strongest most visibly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import PathPatch

import spinney as sp
from spinney.errors import MissingExtraError, ParameterError
from spinney.report.draw import strongest
from spinney.report.parts import Line, lines_between
from spinney.report.pictures import graph_figure, save_figure
from support.small_forests import chain, fitted


def labels(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def drawn(figure: Any) -> list[PathPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, PathPatch)]


def test_every_column_and_every_pair_is_drawn() -> None:
    model = fitted(target="label")
    figure = graph_figure(model.release_)
    assert sorted(labels(figure)) == ["free", "kind", "label", "size"]
    assert len(drawn(figure)) == 5, "three columns with the target, and a tree of two pairs"
    assert "4 columns, 5 pairs" in figure.axes[0].get_title()
    assert "only" not in figure.axes[0].get_title()


def test_lines_are_as_wide_as_the_columns_are_dependent() -> None:
    model = fitted()
    lines = lines_between(model.explain())
    widths = [patch.get_linewidth() for patch in reversed(drawn(graph_figure(model.release_)))]
    assert [line.distance for line in lines] == sorted((line.distance for line in lines), reverse=True)
    assert widths == sorted(widths, reverse=True)
    assert np.corrcoef(widths, [line.distance for line in lines])[0, 1] == pytest.approx(1)
    assert {lines[0].first, lines[0].second} == {"kind", "size"}


def test_the_target_stands_in_the_middle() -> None:
    texts = {text.get_text(): text for text in graph_figure(fitted(target="label").release_).axes[0].texts}
    assert texts["label"].get_position() == (0, 0)
    assert texts["label"].get_bbox_patch() is not None
    for name in ("kind", "size", "free"):
        assert np.hypot(*texts[name].get_position()) > 1, "labels stand outside the circle"


def test_neighbours_in_the_tree_are_neighbours_on_the_circle() -> None:
    """The order is found from the lines: a chain is walked from one end to the other."""
    order = labels(graph_figure(chain(30)))
    numbers = [int(name.split()[1]) for name in order]
    apart = np.abs(np.diff([*numbers, numbers[0]]))
    assert (apart == 1).sum() >= 28


def test_many_columns_show_thestrongest_lines_and_say_so() -> None:
    figure = graph_figure(chain(300))
    title = figure.axes[0].get_title()
    assert len(drawn(figure)) == 120
    assert "only the 120 strongest pairs" in title
    assert "179 other columns are left out" in title
    assert "column 000" in labels(figure)
    assert "column 299" not in labels(figure)


def test_a_target_keeps_its_lines_among_many() -> None:
    """The strongest lines are all between other columns here; some to the target are drawn nevertheless."""
    pairs = [Line(f"c{i}", f"c{i + 1}", 0.5) for i in range(200)] + [Line(f"c{i}", "y", 0.1) for i in range(200)]
    shown = strongest(pairs, "y")
    assert len(shown) == 120
    assert sum(line.touches("y") for line in shown) == 40
    assert strongest(pairs, None) == pairs[:120]
    assert strongest(pairs[150:250], "y") == pairs[150:250]


@pytest.mark.parametrize("n_columns", [1, 2, 50, 300])
def test_labels_stay_inside_the_picture(n_columns: int) -> None:
    figure = graph_figure(chain(n_columns))
    figure.draw_without_rendering()
    (left, bottom), (right, top) = figure.bbox.min, figure.bbox.max
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert left <= box.x0 <= box.x1 <= right
        assert bottom <= box.y0 <= box.y1 <= top


def test_nothing_together_is_a_picture_of_columns_alone(tmp_path: Path) -> None:
    figure = graph_figure(fitted("0.0001", 20).release_)
    assert not drawn(figure)
    assert "no columns were counted together" in figure.axes[0].get_title()
    save_figure(figure, tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 0


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_equal_releases_are_equal_files(tmp_path: Path, ending: str) -> None:
    for name in ("a", "b"):
        save_figure(graph_figure(fitted(target="label").release_), tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_names_are_not_formulas(tmp_path: Path) -> None:
    names = ["$1^", "$2_$"]
    rows = np.repeat([[0, 0], [1, 1]], 2000, axis=0)
    release = sp.ForestSynthesizer("1").fit(rows, sp.Schema({name: sp.Boolean() for name in names})).release_
    figure = graph_figure(release)
    assert sorted(labels(figure)) == names
    save_figure(figure, tmp_path / "g.svg")


def test_a_release_that_is_not_private_says_so_in_its_picture() -> None:
    assert "NOT PRIVATE" in graph_figure(fitted().release_).get_supxlabel()
    assert "NOT PRIVATE" not in (graph_figure(chain(3)).get_supxlabel() or "")


def test_other_releases_have_no_graph() -> None:
    release = sp.KDTreeSynthesizer("1").fit(np.zeros((50, 1)), sp.Schema({"x": sp.Real(0, 1)})).release_
    with pytest.raises(ParameterError, match="not a forest"):
        graph_figure(release)


def test_matplotlib_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib, or install Spinney with its extra 'plot'"):
        graph_figure(chain(3))
