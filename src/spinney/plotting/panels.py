"""Axes: those that were given, or those of a new figure, without pyplot; plain, and marked where nothing is private."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from spinney.errors import ParameterError
from spinney.report.picture import new_figure
from spinney.report.svg import INK, LINE, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ALARM = "#b00020"
_DPI = 80  # in notebooks


def panels(ax: Any, width: float, height: float) -> Axes:
    """The axes that were given, or new ones of so many inches."""
    if ax is None:
        axes: Axes = new_figure(width, height).add_subplot()
        _show_in_notebooks(axes)
        return axes
    if not callable(getattr(ax, "add_patch", None)):
        raise ParameterError(
            f"ax is a {type(ax).__name__}, not the axes of a matplotlib figure; leave it out for new ones"
        )
    given: Axes = ax
    return given


def bare(n_panels: int, across: int, width: float, height: float) -> list[Axes]:
    """So many panels of one new figure, in rows; each of so many inches."""
    across = min(across, n_panels)
    n_lines = -(-n_panels // across)
    every = list(new_figure(width * across, height * n_lines).subplots(n_lines, across, squeeze=False).flat)
    for axes in every[n_panels:]:
        axes.remove()
    _show_in_notebooks(every[0])
    return every[:n_panels]


def _show_in_notebooks(axes: Any) -> None:
    """Let a notebook draw the figure where a cell ends with it or with these axes; pyplot does so for its own alone."""
    axes._repr_png_ = axes.figure._repr_png_ = partial(_png, axes.figure)


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def style(axes: Axes, *, framed: bool = True) -> None:
    """Few and thin lines."""
    for side, spine in axes.spines.items():
        spine.set_visible(framed and side in ("left", "bottom"))
        spine.set_color(LINE)
    axes.tick_params(labelsize=9, colors=QUIET, labelcolor=INK, length=3 if framed else 0)


def finish(axes: Axes, title: str, release: Any, *, pad: float = 6.0) -> None:
    """A title, and in red what voids the guarantee of the release."""
    void = bool(release.card.brands)
    text = f"{title}\nNOT PRIVATE: see the card" if void else title
    axes.set_title(text, fontsize=10, color=_ALARM if void else INK, loc="left", pad=pad, parse_math=False)
