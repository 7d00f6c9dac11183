"""Pictures show the released bins where they are, as dense as they are, and say when a release is not private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import PolyCollection, QuadMesh

import spinney as sp
from spinney.errors import MissingExtraError, ParameterError
from spinney.report.pictures import comparison_figure, partition_figure, save_figure
from spinney.tree.release.geometry import Boxes, bin_boxes
from support.command_line import spinney

PLANE = sp.Schema({"x": sp.Real(0, 8), "y": sp.Real(-1, 1)})


def points(n_rows: int = 2000) -> Any:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.beta(2, 6, n_rows) * 8, rng.normal(0, 0.3, n_rows)])


def plane(**options: Any) -> sp.Release:
    return sp.KDTreeSynthesizer(epsilon=1, **options).fit(points(), PLANE).release_


def rectangles(figure: Any) -> Any:
    return next(part for part in figure.axes[0].collections if isinstance(part, PolyCollection))


def shown(release: sp.Release) -> tuple[Boxes, Any]:
    """Boxes and counts of what has rows: released bins, or leaves whose weight, fitted to the total, is above 0."""
    if release.kind == "bins":
        return bin_boxes(release.bins), release.bins.noisy_counts
    is_used = release.density.weights > 0
    boxes = bin_boxes(release.moments)
    parts = (part[is_used] for part in (boxes.low, boxes.length, boxes.null_share))
    return Boxes(*parts), release.density.weights[is_used]


each_leaf = pytest.mark.parametrize("moments", [True, False], ids=["moments", "bins"])


@each_leaf
def test_every_bin_is_a_rectangle_in_its_place(moments: bool) -> None:
    release = plane(moments=moments)
    boxes, _ = shown(release)
    drawn = np.array([path.get_extents().extents for path in rectangles(partition_figure(release)).get_paths()])
    assert len(drawn) > 10
    assert np.allclose(drawn, np.hstack([boxes.low, boxes.low + boxes.length]))


@each_leaf
def test_shades_follow_the_density(moments: bool) -> None:
    release = plane(moments=moments)
    boxes, counts = shown(release)
    density = counts / boxes.length.prod(axis=1)
    shades = rectangles(partition_figure(release)).get_array()
    assert np.allclose(shades / shades.max(), density / density.max())
    areas = boxes.length.prod(axis=1)
    assert np.isclose(np.average(shades, weights=areas), 1)


def test_columns_can_be_swapped() -> None:
    release = plane()
    figure = partition_figure(release, ["y", "x"])
    assert figure.axes[0].get_xlabel() == "y"
    assert figure.axes[0].get_xlim() == (-1, 1)
    assert figure.axes[0].get_ylim() == (0, 8)


def test_bins_of_more_columns_add_up() -> None:
    """In the two columns that are drawn, the picture is the sum over all others."""
    rng = np.random.default_rng(4)
    table = rng.random((4000, 3)) ** 2
    schema = sp.Schema({name: sp.Real(0, 1) for name in "xyz"})
    release = sp.GridSynthesizer(epsilon=50, bins=4, threshold=0).fit(table, schema).release_
    mesh = next(
        part for part in partition_figure(release, ["x", "z"]).axes[0].collections if isinstance(part, QuadMesh)
    )
    drawn = np.asarray(mesh.get_array()).reshape(400, 400)

    boxes = bin_boxes(release.bins)
    expected = np.zeros((4, 4))
    for low, count in zip(boxes.low, release.bins.noisy_counts, strict=True):
        expected[int(low[2] * 4 + 0.5), int(low[0] * 4 + 0.5)] += count
    expected /= expected.mean()
    assert np.allclose(drawn[50::100, 50::100], expected)
    assert drawn[0, 0] == pytest.approx(drawn[99, 99]), "a bin has one shade throughout"


def test_dates_and_lists_have_their_own_ticks() -> None:
    schema = sp.Schema(
        {
            "day": sp.Date("2020-01-01", "2020-12-31"),
            "price in $": sp.Category(["$1", "$2^", "more"]),
            "seen": sp.Datetime("2020-01-01", "2021-01-01", timezone="Europe/Rome"),
            "many": sp.Integer(0, 9),
            "is_new": sp.Boolean(),
        }
    )
    n = 300
    table = pa.table(
        {
            "day": pa.array(np.full(n, 18300, dtype=np.int32)).cast(pa.date32()),
            "price in $": pa.array(["$1", "$2^", "more"] * (n // 3)),
            "seen": pa.array(np.full(n, 18300 * 86_400_000_000)).cast(pa.timestamp("us", "Europe/Rome")),
            "many": pa.array(np.arange(n) % 10),
            "is_new": pa.array([True, False] * (n // 2)),
        }
    )
    release = sp.KDTreeSynthesizer(epsilon=5).fit(table, schema).release_
    axes = partition_figure(release, ["price in $", "day"]).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["$1", "$2^", "more"]
    assert axes.get_ylim() == (18262, 18628)
    axes = partition_figure(release, ["seen", "is_new"]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["false", "true"]
    assert partition_figure(release, ["many", "is_new"]).axes[0].get_xlim() == (0, 10)


def test_a_long_list_is_not_labelled_in_full(tmp_path: Path) -> None:
    values = [f"v{index}" for index in range(300)]
    schema = sp.Schema({"c": sp.Category(values), "x": sp.Real(0, 1)})
    table = pa.table({"c": values, "x": np.linspace(0, 1, 300)})
    figure = partition_figure(sp.KDTreeSynthesizer(epsilon=1).fit(table, schema).release_)
    assert len(figure.axes[0].get_xticklabels()) == 20


@each_leaf
def test_bins_of_missing_values_lie_nowhere(moments: bool) -> None:
    schema = sp.Schema({"x": sp.Real(0, 1, nullable=True), "y": sp.Real(0, 1)})
    table = pa.table({"x": [0.3, None] * 500, "y": [0.5, 0.7] * 500})
    release = sp.KDTreeSynthesizer(epsilon=5, moments=moments).fit(table, schema).release_
    is_null = shown(release)[0].null_share[:, 0] == 1
    assert is_null.any()
    assert len(rectangles(partition_figure(release)).get_paths()) == (~is_null).sum()


def test_a_release_without_bins_is_an_empty_picture(tmp_path: Path) -> None:
    save_figure(partition_figure(plane(threshold=10**9)), tmp_path / "p.png")
    assert (tmp_path / "p.png").exists()


def test_a_release_that_is_not_private_says_so_in_its_picture() -> None:
    model = sp.KDTreeSynthesizer(epsilon=1)
    branded = model.fit(points(), PLANE, entropy=sp.UnsafeSeededEntropy(1)).release_
    for release, is_marked in ((plane(), False), (branded, True)):
        for figure in (partition_figure(release), comparison_figure(release, points(), points())):
            assert ("NOT PRIVATE" in (figure.get_supxlabel() or "")) == is_marked


def test_the_comparison_shows_both_tables() -> None:
    private, synthetic = points(50), points(70)
    figure = comparison_figure(plane(), private, synthetic)
    shown = [axes.lines[0].get_xydata() for axes in (figure.axes[0], figure.axes[2])]
    assert np.array_equal(shown[0], private)
    assert np.array_equal(shown[1], synthetic)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_equal_figures_are_equal_files(tmp_path: Path, ending: str) -> None:
    release = plane()
    for name in ("a", "b"):
        save_figure(partition_figure(release), tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_columns_are_checked() -> None:
    release = plane()
    for columns in (["x"], ["x", "x"], ["x", "y", "x"], ["x", "w"]):
        with pytest.raises(ParameterError, match="columns="):
            partition_figure(release, columns)


def test_only_known_endings_are_written(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"\.svg or \.png"):
        save_figure(partition_figure(plane()), tmp_path / "p.jpeg")


def test_matplotlib_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    release = plane()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib, or install Spinney with its extra 'plot'"):
        partition_figure(release)


def test_the_command_takes_names_with_commas(tmp_path: Path) -> None:
    """Quoted, as in a CSV; unquoted they are two names, of which neither is a column."""
    path, out = tmp_path / "r.spinney", tmp_path / "p.svg"
    schema = sp.Schema({"income, yearly": sp.Real(0, 8), 'the "age"': sp.Real(-1, 1), "z": sp.Real(0, 1)})
    table = np.column_stack([points(), np.full(2000, 0.5)])
    sp.KDTreeSynthesizer(epsilon=1).fit(table, schema).save(path)
    run = spinney("picture", path, "--columns", '"income, yearly","the ""age"""', "--out", out)
    assert run.status == 0, run.err
    assert out.exists()
    run = spinney("picture", path, "--columns", "income, yearly,z", "--out", tmp_path / "q.svg")
    assert run.status == 2
    assert "does not name two different columns" in run.err
    run = spinney("picture", path, "--columns", "", "--out", tmp_path / "q.svg")
    assert run.status == 2
    assert "does not name two different columns" in run.err
    assert '"income, yearly"' in spinney("picture", "--help").out
