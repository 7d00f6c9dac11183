"""Error bars of columns and pairs: they part a column without gaps, hold as often as they say, and always speak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release.answers.answer import shown_level
from spinney.release.answers.bars import MOST_BARS, ErrorBars, PairBars
from spinney.report.pictures import bars_figure
from support.command_line import spinney
from support.small_forests import fitted

GOLDEN = Path(__file__).parents[2] / "golden"
N = 2_000


def table(seed: int = 0) -> tuple[pd.DataFrame, sp.Schema]:
    """Columns of every kind that bars are drawn of, with piles, steps and nulls."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(list("abc"), N, p=[0.6, 0.3, 0.1])
    steps = rng.integers(0, 21, N) / 2
    frame = pd.DataFrame(
        {
            "real": np.where(rng.random(N) < 0.3, 5.0, rng.exponential(20, N).clip(0, 100)),
            "steps": steps,
            "whole": rng.poisson(6, N).clip(0, 40),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1_400, N), unit="D"),
            "kind": kind,
            "flag": rng.random(N) < np.where(kind == "a", 0.9, 0.2),
            "some": pd.array([None if u < 0.2 else int(9 * u) for u in rng.random(N)], dtype="Int64"),
        }
    )
    columns: dict[str, sp.Column] = {
        "real": sp.Real(0, 100),
        "steps": sp.Real(0, 10, multiple_of=0.5),
        "whole": sp.Integer(0, 40),
        "day": sp.Date("2020-01-01", "2023-12-31"),
        "kind": sp.Category(["a", "b", "c"]),
        "flag": sp.Boolean(),
        "some": sp.Integer(0, 9, nullable=True),
    }
    return frame, sp.Schema(columns)


def true_count(values: pd.Series, label: Any) -> int:
    """How many rows a bar stands for."""
    if label is None:
        return int(values.isna().sum())
    low, high = label if isinstance(label, tuple) else (label, label)
    if isinstance(low, str | bool):
        return int((values == low).sum())
    if values.dtype.kind == "M":
        low, high = pd.Timestamp(low), pd.Timestamp(high)
    return int(((values >= low) & (values <= high)).sum())


@pytest.mark.parametrize("synthesizer", [sp.ForestSynthesizer, sp.KDTreeSynthesizer])
def test_bars_part_every_column_and_hold(synthesizer: Any) -> None:
    """Every row is in one bar, estimates add up to all rows, and with little noise intervals are short and hold."""
    frame, schema = table()
    options = {"moments": True} if synthesizer is sp.KDTreeSynthesizer else {}
    model = synthesizer("100", **options).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(2))
    bars = model.release_.error_bars(level=0.999, pairs=False)
    assert [column.name for column in bars.columns] == list(schema)
    for column in bars.columns:
        answers = column.answers
        assert answers is not None, column.refusal
        assert 2 <= len(answers) <= MOST_BARS + 1
        truth = [true_count(frame[column.name], label) for (label,) in answers.labels]
        assert sum(truth) == N, f"{column.name}: {answers.labels}"
        if synthesizer is sp.ForestSynthesizer:
            assert column.statement == "certified"
            assert answers.simultaneous
            assert all(one.low <= n <= one.high for one, n in zip(answers, truth, strict=True))  # type: ignore[operator]
            assert sum(one.estimate for one in answers) == pytest.approx(N, rel=0.02)


def test_bars_of_a_forest_hold_at_once_as_often_as_they_say() -> None:
    """Over many releases all bars of a column hold in 90 % or more; intervals of 0.6 times the width do not."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.poisson(8, 800).clip(0, 30), "k": rng.choice(list("abcdefgh"), 800)})
    schema = sp.Schema({"x": sp.Integer(0, 30), "k": sp.Category(list("abcdefgh"))})
    held, short = [], []
    for seed in range(50):
        release = sp.ForestSynthesizer("1").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(seed)).release_
        for column in release.error_bars(level=0.9, pairs=False).columns:
            assert column.answers is not None
            if not column.answers.simultaneous:
                continue
            every = [
                (true_count(frame[column.name], label), answer)
                for (label,), answer in zip(column.answers.labels, column.answers, strict=True)
            ]
            held.append(all(one.low <= truth <= one.high for truth, one in every))
            short.append(all(abs(truth - one.estimate) <= 0.6 * (one.high - one.estimate) for truth, one in every))
    assert len(held) > 60
    assert np.mean(held) > 0.82, np.mean(held)
    assert np.mean(short) < 0.75, np.mean(short)


def test_pairs_that_were_counted_together_come_first_with_a_figure() -> None:
    """A counted pair has a half-width in rows and as a share; a pair's cells hold nearly all of its rows."""
    release = fitted(target="label").release_
    bars = release.error_bars()
    together = [pair for pair in bars.pairs if pair.is_counted]
    assert together
    assert list(bars.pairs[: len(together)]) == together
    for pair in together:
        assert pair.share == pytest.approx(pair.half_width / bars.n_rows)  # type: ignore[operator]
        assert 0 < pair.share < 0.5
        assert pair.statement in ("certified", "calibrated")
    some = together[0]
    assert bars.of(*reversed(some.columns)) is some
    with pytest.raises(ParameterError, match=r"no error bars of 'nothing'"):
        bars.of("nothing")


def test_a_pair_that_nothing_was_measured_of_is_marked() -> None:
    """Without a delta no sums of products are released, so a pair apart has neither figure nor interval."""
    release = fitted(delta=0).release_
    apart = [pair for pair in release.error_bars().pairs if not pair.is_counted]
    assert apart
    for pair in apart:
        assert (pair.share, pair.half_width, pair.statement) == (None, None, "not supported")
        assert "not counted together" in pair.why
    assert "not supported" in str(release.error_bars())


def test_some_columns_only() -> None:
    """Named columns alone get bars, in their order; unknown ones are refused."""
    release = fitted().release_
    bars = release.error_bars(["kind", "free"])
    assert [column.name for column in bars.columns] == ["kind", "free"]
    assert [set(pair.columns) for pair in bars.pairs] == [{"kind", "free"}]
    with pytest.raises(ParameterError, match="did you mean 'kind'"):
        release.error_bars(["kin"])
    with pytest.raises(ParameterError, match="columns is empty"):
        release.error_bars([])
    with pytest.raises(ParameterError, match="level=95"):
        release.error_bars(level=95)
    with pytest.raises(ParameterError, match="pairs='no'"):
        release.error_bars(pairs="no")  # type: ignore[arg-type]


def test_everything_is_plain_data() -> None:
    bars = fitted().release_.error_bars()
    read = json.loads(json.dumps(bars.to_dict()))
    assert [column["name"] for column in read["columns"]] == [column.name for column in bars.columns]
    assert read["columns"][0]["bars"][0].keys() >= {"estimate", "low", "high", "statement", "why"}
    assert read["pairs"][0].keys() >= {"columns", "share", "half_width", "statement", "is_counted"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.spinney")), ids=lambda path: path.stem)
def test_every_kind_and_every_old_file_says_what_it_can(path: Path) -> None:
    """No release fails: one without answers says why, an old forest gives bars without intervals, and why."""
    release = sp.load(path)
    bars = release.error_bars()
    assert str(bars)
    json.dumps(bars.to_dict())
    if release.kind not in ("forest", "moments", "people"):
        assert bars.refusal
        assert not bars.columns
        assert "no error bars" in str(bars)
        with pytest.raises(ParameterError, match="no error bars to draw"):
            bars_figure(release, bars)
        return
    assert not bars.refusal
    if release.kind != "people":  # of which hidden levels and first values are not shown
        assert len(bars.columns) == len(release.schema)
    has_counts = release.kind in ("moments", "people") or release.measured is not None  # type: ignore[attr-defined]
    intervals = [one.has_interval for column in bars.columns for one in column.answers or ()]
    assert any(intervals) if has_counts else not any(intervals)
    if not has_counts:
        assert "earlier version" in str(bars)


# ----------------------------------------------------------------------------------------- pages and pictures


def test_explanations_have_them_on_request() -> None:
    model = fitted()
    assert model.explain().error_bars is None
    assert "error_bars" not in model.explain().to_dict()
    explained = model.explain(error_bars=True)
    assert isinstance(explained.error_bars, ErrorBars)
    assert "error bars of columns" in str(explained)
    assert explained.to_dict()["error_bars"] == explained.error_bars.to_dict()


def test_the_page_fills_bars_up_to_the_low_end() -> None:
    """A bar is filled up to the low end of its interval and dashed up to the high end."""
    page = str(fitted().release_.error_bars())
    bars = [line.split()[1] for line in page.splitlines() if "#" in line]
    assert bars
    assert all(set(bar) <= {"#", "-"} and "-#" not in bar for bar in bars)
    assert max(map(len, page.splitlines())) <= 100


def test_the_picture_has_a_panel_for_every_column_and_crosses_what_is_not_supported() -> None:
    release = fitted(delta=0).release_
    bars = release.error_bars()
    figure = bars_figure(release, bars)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    for column in bars.columns:
        assert any(title.startswith(f"{column.name} (") for title in titles)
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == sum(pair.share is None for pair in bars.pairs) > 0


def test_a_picture_of_too_many_columns_is_refused() -> None:
    bars = fitted().release_.error_bars(pairs=False)
    many = ErrorBars(bars.level, bars.n_rows, bars.columns * 20, ())
    with pytest.raises(ParameterError, match="up to 30 columns"):
        bars_figure(fitted().release_, many)


def test_commands_show_and_draw_them(tmp_path: Path) -> None:
    forest, out = tmp_path / "forest.spinney", tmp_path / "bars.png"
    fitted().save(forest)
    wanted = fitted().release_.error_bars()
    assert str(wanted) in spinney("explain", forest, "--error-bars").out
    assert str(wanted) in spinney("card", forest, "--error-bars").out
    assert spinney("card", forest, "--error-bars", "--json").json["error_bars"] == wanted.to_dict()
    assert "error_bars" not in spinney("card", forest, "--json").json
    run = spinney("picture", forest, "--error-bars", "--columns", "kind,free", "--out", out)
    assert run.status == 0, run.err
    assert out.read_bytes()[1:4] == b"PNG"
    old = spinney("card", GOLDEN / "v3-tree-cube.spinney", "--error-bars")
    assert old.status == 0
    assert "there are no error bars" in old.out


def test_pairs_are_plain_values() -> None:
    pair = PairBars(("a", "b"), True, 9, 12.0, 0.1, True, "certified", "why")
    assert pair.to_dict()["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    ("level", "told"),
    [(0.95, "95 %"), (0.999, "99.9 %"), (0.9999999, "99.99999 %"), (0.99999994, "99.999994 %"), (1 / 3, "33.3333 %")],
)
def test_levels_are_told_with_the_digits_that_they_take(level: float, told: str) -> None:
    """One that is near 1 is not shown as 100 %."""
    assert shown_level(level) == told
