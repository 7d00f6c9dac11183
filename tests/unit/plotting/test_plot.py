"""Pictures on users' axes: what is drawn is what was released, and nothing else of matplotlib changes."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import spinney as sp
from spinney.errors import MissingExtraError, NotFittedError, ParameterError
from spinney.report.page import report_contents
from support.small_people import linked_model, shop

SCHEMA = sp.Schema(
    {
        "age": sp.Integer(0, 99),
        "kind": sp.Category(["a", "$b$", "c"]),
        "amount": sp.Real(0, 1000),
        "label": sp.Boolean(),
    }
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "$b$", "c"], 2000, p=[0.6, 0.3, 0.1])
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, 2000),
            "kind": kind,
            "amount": rng.gamma(2, 50, 2000),
            "label": (kind == "a") ^ (rng.random(2000) < 0.1),
        }
    )


@pytest.fixture(scope="module")
def model(table) -> sp.ForestSynthesizer:
    return sp.ForestSynthesizer(3, target="label").fit(table, SCHEMA, ledger=False)


@pytest.fixture(scope="module")
def contents(model):
    return report_contents(model.release_)


@pytest.fixture(scope="module")
def town() -> sp.KDTreeSynthesizer:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.normal(-1.5, 0.5, 3000), rng.normal(52.5, 0.5, 3000)])
    return sp.KDTreeSynthesizer(1).fit(points, sp.Schema({"longitude": sp.Real(-4, 2), "latitude": sp.Real(50, 56)}))


def axes_of(width: float = 4, height: float = 4):
    return Figure(figsize=(width, height)).add_subplot()


def drawn_bars(axes) -> list[float]:
    return [patch.get_width() for patch in axes.patches]


@pytest.mark.parametrize("column", ["age", "kind", "label"])
def test_bars_are_released_counts_with_their_intervals(model, contents, column):
    """Every bar is as long as the released count, its line goes from one end of its interval to the other."""
    axes = sp.plot.distribution(model, column)
    (described,) = (one for one in contents.columns if one["key"] == column)
    assert drawn_bars(axes) == pytest.approx([max(bar["estimate"], 0) for bar in described["bars"]])
    ends = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2][::2]
    assert np.ravel(ends) == pytest.approx(np.ravel([(max(bar["low"], 0), bar["high"]) for bar in described["bars"]]))
    assert [text.get_text() for text in axes.get_yticklabels()] == [bar["label"] for bar in described["bars"]]
    assert axes.get_xlabel() == "rows"
    assert axes.get_title(loc="left") == column
    assert sum(bar["share"] for bar in described["bars"]) == pytest.approx(1, abs=0.02)


def test_the_release_of_a_file_is_drawn_like_the_model(model, tmp_path):
    """A model, its release and the file of it give the same picture."""
    model.save(tmp_path / "a.spinney")
    every = [sp.plot.distribution(one, "kind") for one in (model, model.release_, sp.load(tmp_path / "a.spinney"))]
    assert drawn_bars(every[0]) == drawn_bars(every[1]) == drawn_bars(every[2])


def test_the_real_table_is_drawn_beside_on_request_only(model, table):
    """Diamonds stand at the true counts, and the title says that the picture is not for publication."""
    axes = sp.plot.distribution(model, "kind", against=table)
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    counts = table["kind"].value_counts()
    assert [line.get_xdata()[0] for line in diamonds] == [counts[kind] for kind in ("a", "$b$", "c")]
    assert "do not publish" in axes.get_title(loc="left")
    alone = sp.plot.distribution(model, "kind")
    assert not [line for line in alone.lines if line.get_marker() == "D"]
    assert "do not publish" not in alone.get_title(loc="left")


def test_axes_that_are_given_are_drawn_on(model, town):
    """Every function takes axes, returns them, and makes no other figure."""
    for draw in (
        lambda ax: sp.plot.distribution(model, "age", ax=ax),
        lambda ax: sp.plot.pairs(model, ax=ax),
        lambda ax: sp.plot.pair(model, "age", "kind", ax=ax),
        lambda ax: sp.plot.graph(model, ax=ax),
        lambda ax: sp.plot.map(town, ax=ax),
    ):
        axes = axes_of()
        assert draw(axes) is axes
        assert axes.patches or axes.images
        axes.figure.canvas.draw()  # names with dollar signs are no formulas


def test_panels_of_all_columns(model):
    """One panel for each column, in one figure, named."""
    every = sp.plot.distributions(model)
    assert [axes.get_title(loc="left") for axes in every] == list(SCHEMA)
    assert len({axes.figure for axes in every}) == 1
    assert [axes.get_title(loc="left") for axes in sp.plot.distributions(model, ["kind"])] == ["kind"]


def test_heat_maps_hold_the_figures_of_the_report(model, contents):
    """One cell for each pair, the darkest for the strongest dependence; the names are along both sides."""
    axes = sp.plot.pairs(model)
    assert [text.get_text() for text in axes.get_yticklabels()] == contents.pairs["names"]
    found = {frozenset(pair["columns"]): pair["distance"] for pair in contents.pairs["pairs"]}
    names = contents.pairs["names"]
    cells = {}
    for patch in axes.patches:
        if patch.get_fill() and patch.get_height() > 0.9:
            x, y = round(patch.get_x() + 0.46), round(patch.get_y() + 0.46)
            cells[frozenset((names[x], names[y]))] = patch.get_alpha()
    assert cells.keys() == found.keys()
    assert max(cells, key=cells.get) == max(found, key=found.get) == {"kind", "label"}
    assert sp.plot.pairs(model, show="uncertainty").get_title(loc="left") == "how far a cell may be off"


def test_a_pair_shows_shares_of_rows(model):
    """The cells of a pair add up to one, and show what goes with what."""
    axes = sp.plot.pair(model, "kind", "label")
    shares = np.asarray(axes.images[0].get_array())
    assert shares.shape == (2, 3)
    assert shares.sum() == pytest.approx(1)
    assert shares[1, 0] > 5 * shares[0, 0]  # nearly all of kind a have the label
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "$b$", "c"]


def test_maps_have_the_aspect_of_the_ground(town):
    """A degree of latitude is drawn 1 / cos(latitude) times as long as one of longitude; all rows are there."""
    axes = sp.plot.map(town)
    assert axes.get_aspect() == pytest.approx(1 / math.cos(math.radians(53)))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude", "latitude")
    assert float(np.ma.sum(axes.images[0].get_array())) == pytest.approx(3000, rel=0.05)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-4, 2), (50, 56))


def test_notebooks_show_axes_and_figures_of_ours(model):
    """A cell that ends with them shows the picture, without pyplot; axes that were given are their owner's to show."""
    one, every = sp.plot.distribution(model, "kind"), sp.plot.distributions(model, ["kind", "label"])
    pictures = [thing._repr_png_() for thing in (one, one.figure, every[0].figure)]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    widths = [int.from_bytes(picture[16:20]) for picture in pictures]
    assert widths[2] > 1.5 * widths[0] == 1.5 * widths[1], "two panels are wider than one"
    assert not hasattr(sp.plot.distribution(model, "kind", ax=axes_of()), "_repr_png_")


def test_a_graph_names_the_columns(model):
    """The columns stand around the target, which is in the middle."""
    axes = sp.plot.graph(model)
    written = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(SCHEMA) <= set(written)
    assert written["label"] == (0, 0)


def test_persons_and_their_rows_are_drawn():
    """Columns of persons have error bars in persons, columns of rows are shares without any; both name their table."""
    linked = linked_model()
    of_persons = sp.plot.distribution(linked, "customers.region", against=shop())
    assert of_persons.get_xlabel() == "persons"
    diamonds = [line.get_xdata()[0] for line in of_persons.lines if line.get_marker() == "D"]
    assert sum(diamonds) == len(shop()["customers"])
    of_rows = sp.plot.distribution(linked, "sales.kind")
    assert of_rows.get_xlabel() == "share of rows"
    assert sum(drawn_bars(of_rows)) == pytest.approx(1)
    assert sp.plot.pair(linked, "sales.kind", "sales.amount").images
    assert sp.plot.graph(linked).texts


def test_what_is_not_private_says_so(table):
    """The picture of a release with seeded noise is marked in red."""
    branded = sp.ForestSynthesizer(3).fit(table, SCHEMA, entropy=sp.UnsafeSeededEntropy(1))
    axes = sp.plot.distribution(branded, "kind")
    assert "NOT PRIVATE" in axes.get_title(loc="left")


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda model, town: sp.plot.distribution(model, "amonut"), ParameterError, "did you mean 'amount'"),
        (lambda model, town: sp.plot.distribution(model, "age", level=2), ParameterError, "level"),
        (lambda model, town: sp.plot.distribution("file", "age"), ParameterError, "release is a str"),
        (lambda model, town: sp.plot.distribution(sp.ForestSynthesizer(), "age"), NotFittedError, "not fitted"),
        (lambda model, town: sp.plot.distribution(model, "age", ax=3), ParameterError, "ax is a int"),
        (lambda model, town: sp.plot.distributions(model, "age"), ParameterError, "give a list"),
        (lambda model, town: sp.plot.pairs(model, show="all"), ParameterError, "show='all'"),
        (lambda model, town: sp.plot.pair(model, "age", "age"), ParameterError, "two different columns"),
        (lambda model, town: sp.plot.pair(model, "age", "none"), ParameterError, "not one of the release"),
        (lambda model, town: sp.plot.map(model), ParameterError, "no map"),
        (lambda model, town: sp.plot.map(town, "x", "y"), ParameterError, "it has 'longitude' and 'latitude'"),
        (lambda model, town: sp.plot.graph(town), ParameterError, "no graph"),
    ],
)
def test_what_cannot_be_drawn_is_said(model, town, draw, error, message):
    """Errors name the argument and the remedy."""
    with pytest.raises(error, match=message):
        draw(model, town)


def test_without_matplotlib_the_remedy_is_named(model, monkeypatch):
    """The extra is named where the library is missing."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        sp.plot.distribution(model, "kind")


def test_nothing_of_matplotlib_changes(model, town, tmp_path):
    """No setting changes, no figure is kept, and a process without a display needs no pyplot."""
    before = dict(mpl.rcParams)
    sp.plot.distributions(model)
    assert dict(mpl.rcParams) == before
    town.save(tmp_path / "a.spinney")
    code = (
        "import json, sys, spinney as sp\n"
        f"axes = sp.plot.distribution(sp.load({str(tmp_path / 'a.spinney')!r}), 'latitude')\n"
        f"axes.figure.savefig({str(tmp_path / 'a.png')!r})\n"
        "print(json.dumps('matplotlib.pyplot' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
    assert (tmp_path / "a.png").stat().st_size > 1000
