"""Drawings that the studio adds to those of the report, and what pages of releases share.

Drawings follow from a release and what was asked, so a browser may cache them. They are made in the process
beside the server (`background.py`) and served as SVG files that run nothing and refer to nothing.

    draw answers   answers with intervals, and a pair's table
    pictures       a drawing as a file with its own style sheet and policy
    picture work   which drawing is made for which page, beside the server
    view parts     the release of an address, waiting for work, addresses of pictures
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from hashlib import sha256
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from spinney.errors import ParameterError, SpinneyError
from spinney.privacy.ledger import Ledger
from spinney.report.draw import (
    INK,
    LINE,
    LINE_HEIGHT,
    MOST_BARS,
    PAPER,
    QUIET,
    SLANTED,
    STRONG,
    WIDTH,
    belief_drawing,
    budget_drawing,
    canvas,
    column_drawing,
    draw_answers,
    graph_drawing,
    map_drawing,
    pairs_drawing,
    to_svg,
    write,
    write_beside,
    write_ticks,
)
from spinney.text import cut, printable
from spinney_studio.background import OpenedRelease, StillWorking, contents, maps
from spinney_studio.pages import Call, Page
from spinney_studio.views import LedgerAt, answered, columns_under, overview, pair_table
from spinney_studio.workspace import MissingPageError

# --------------------------------------------------------------------------------------------------------- draw answers
# Drawings of answers and of a pair's table, in the style of the report: numbers beside marks, and a scale below.


MOST_DRAWN = 60
ANSWER_WIDTH, _LABELS, _NUMBERS, ANSWER_LINE_HEIGHT = 460, 132, 74, 24
_CELL_WIDTH, _CELL_HEIGHT, _LONGEST_PART = 74, 30, 16
_DARK_FROM = 0.55  # a shade on which paper reads better than ink


def answers_drawing(found: Mapping[str, Any], name: str = "answers") -> str:
    """Estimates with their intervals as SVG, cells from top to bottom."""
    cells = [cell for cell in found["cells"] if isfinite(cell["estimate"])][:MOST_DRAWN]
    height = ANSWER_LINE_HEIGHT * len(cells) + 44
    axes = canvas(ANSWER_WIDTH, height, left=_LABELS, right=_NUMBERS, bottom=34, top=6)
    axes.set_xlim(*_reach(cells))
    axes.set_yticks([])
    axes.tick_params(axis="x", labelsize=11, colors=QUIET, length=4, color=LINE)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:,.6g}")
    axes.grid(axis="x", color=LINE, linewidth=1)
    axes.set_axisbelow(True)
    draw_answers(axes, cells)
    for place, cell in enumerate(cells):
        write_beside(axes, place, ", ".join(cell["label"]), cell["shown"], 13)
    n_more = len(found["cells"]) - len(cells)
    more = f" {n_more} more are in the table." if n_more else ""
    return to_svg(
        axes,
        name=name,
        title=f"Answers to {found['question']}",
        description=f"{len(cells)} estimates with {found['level']} intervals.{more} The table holds the same numbers.",
    )


def _reach(cells: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The ends of the scale: all estimates and intervals, and 0 where it is near."""
    values = [cell[end] for cell in cells for end in ("estimate", "low", "high") if cell[end] is not None]
    values = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = min(values), max(values)
    if low > 0 and low < 0.6 * high:
        low = 0.0
    margin = (high - low or abs(high) or 1.0) * 0.04
    return (low if low == 0.0 else low - margin), high + margin


def pair_drawing(found: Mapping[str, Any], name: str = "pair") -> str:
    """The table of two columns as SVG: the darker a cell, the more rows of its line are in it."""
    from matplotlib.patches import Rectangle

    cells, across, down = found["cells"], found["across"], found["down"]
    left, top = 150, 26 + 4 * min(max(map(len, across)), _LONGEST_PART)
    width, height = left + _CELL_WIDTH * len(across) + 20, top + _CELL_HEIGHT * len(down) + 8
    axes = canvas(width, height, left=left, right=20, bottom=8, top=top)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    for row, line in enumerate(cells):
        total = sum(max(cell["estimate"], 0.0) for cell in line) or 1.0
        for place, cell in enumerate(line):
            share = min(max(cell["estimate"], 0.0) / total, 1.0)
            shade = 0.03 + 0.97 * share**0.8
            axes.add_patch(
                Rectangle((place - 0.48, row - 0.46), 0.96, 0.92, facecolor=STRONG, alpha=shade, linewidth=0)
            )
            color = PAPER if shade > _DARK_FROM else INK
            write(axes, place, row, f"{cell['estimate']:,.0f}", ha="center", va="center", fontsize=11.5, color=color)
    axes.xaxis.tick_top()
    slanted = SLANTED | {"rotation": 30, "ha": "left"}
    write_ticks(axes, "x", [cut(printable(label), _LONGEST_PART) for label in across], 11, **slanted)
    write_ticks(axes, "y", [cut(printable(label), 20) for label in down], 11.5)
    return to_svg(
        axes,
        name=name,
        title=f"{found['columns'][0]} by {found['columns'][1]}",
        description=f"{len(down)} parts of {found['columns'][0]} by {len(across)} of {found['columns'][1]}; the darker "
        "a cell, the larger its share of its line. The table holds the same numbers.",
    )


# ------------------------------------------------------------------------------------------------------------- pictures
# Pictures with an address of their own: drawings of the report as SVG files that bring their colours, light and dark.
#
# A picture is a file that runs nothing and refers to nothing: its policy allows the one style sheet that is inside of
# it, known by its hash, and images that it holds itself. Pictures follow from a release and what was asked, so a
# browser may keep them.


_LIGHT = (
    "--card:#fff;--ink:#20302a;--quiet:#55655d;--line:#d7e0db;--bar:#9dcdb4;--strong:#1f6f4a;--warm:#b45309;"
    "--real:#6d28d9;--target:#b8860b;--soft:#fff4d0"
)
_DARK = (
    "--card:#18211c;--ink:#e6eee9;--quiet:#a9b9b0;--line:#33423a;--bar:#2f6b4e;--strong:#7fd3a6;--warm:#f0a35e;"
    "--real:#c4a1ff;--target:#e2b84b;--soft:#3a3216"
)
_ROLES = ("ink", "quiet", "line", "bar", "strong", "warm", "real", "target", "soft")
STYLE = (
    f":root{{{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}"
    "image{filter:invert(1) hue-rotate(180deg)}}"
    "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;fill:var(--ink)}"
    + "".join(f".f-{role}{{fill:var(--{role})}}.s-{role}{{stroke:var(--{role})}}" for role in _ROLES)
    + ".f-paper{fill:var(--card)}.s-paper{stroke:var(--card)}"
)
POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
)


def standalone(drawing: str) -> str:
    """A drawing of the report with its style sheet inside."""
    start = drawing.index(">") + 1
    return f"{drawing[:start]}<style>{STYLE}</style>{drawing[start:]}"


def column_size(n_bars: int, n_left_out: int) -> tuple[int, int]:
    """How wide and tall the drawing of a column is, so that a page keeps its place."""
    n_lines = n_bars if n_bars <= MOST_BARS + 4 else MOST_BARS
    return WIDTH, LINE_HEIGHT * (n_lines + bool(n_bars - n_lines + n_left_out)) + 6


# --------------------------------------------------------------------------------------------------------- picture work
# Functions that run in the process beside the server: each makes one picture of a release.


def column_picture(path: str, digest: str, where: str, number: int) -> str:
    """One column, among the rows that meet a condition."""
    columns = columns_under(path, digest, where)["columns"]
    return standalone(column_drawing(columns[number], f"c{number}"))


def pair_picture(path: str, digest: str, first: str, second: str) -> str:
    """The table of two columns."""
    return standalone(pair_drawing(pair_table(path, digest, first, second)))


def answers_picture(
    path: str, digest: str, text: str, level: float, population: bool, certified: bool, simultaneous: bool
) -> str:
    """Answers with error bars."""
    return standalone(answers_drawing(answered(path, digest, text, level, population, certified, simultaneous)))


def overview_picture(path: str, digest: str, which: str) -> str:
    """The promise, or where the budget went."""
    found = overview(path, digest)
    return standalone(belief_drawing(found["promise"]) if which == "belief" else budget_drawing(found["budget"]))


def map_picture(path: str, digest: str, number: int) -> str:
    """A map, as wide and tall as it is on the ground."""
    return standalone(map_drawing(maps(path, digest)[number], f"map{number}"))


def contents_picture(path: str, digest: str, which: str) -> str:
    """The graph, or how well pairs are known."""
    found = contents(path, digest)
    if which == "graph":
        return standalone(graph_drawing(found.model["graph"]))
    return standalone(pairs_drawing("uncertainty", found.pairs["names"], found.pairs["pairs"]))


# ----------------------------------------------------------------------------------------------------------- view parts
# What pages of releases share: the release that an address names, waiting for work beside the server, pictures.


_PICTURE_WAIT = 120.0  # seconds; a picture comes late rather than not at all


def patient(page: Callable[[Call], Response]) -> Page:
    """A page that says what it waits for where that takes long, and asks again by itself."""

    @wraps(page)
    def shown(call: Call) -> Response:
        try:
            return page(call)
        except StillWorking as err:
            return call.page("waiting.html", title="One moment", status=202, work=err.title, seconds=round(err.seconds))

    return shown


def release_of(call: Call) -> OpenedRelease:
    """The release that the address of a page names."""
    return call.studio.shelf.by_key(call.path["key"])


def overview_of(call: Call, opened: OpenedRelease) -> dict[str, Any]:
    """What is known of a release without working anything out."""
    found: dict[str, Any] = call.studio.beside.answer("reading the release", overview, *opened.at)
    return found


def ledger_of(call: Call, opened: OpenedRelease) -> tuple[LedgerAt | None, str]:
    """The ledger that paid for a release, as its job has it; or none, and why it cannot be read where there is one."""
    key = opened.origin.get("job")
    try:
        said = call.workspace.job(str(key))["ledger"] if key else None
    except MissingPageError:
        said = None
    if said is None:
        return None, ""
    try:
        account = Ledger.open(said["place"], population=said["population"])
        return (said["place"], said["population"], account.head), ""
    except SpinneyError as err:
        return None, f"The ledger that paid for this release cannot be read: {err}"


def answer(call: Call, title: str, work: Callable[..., Any], *arguments: Any, is_slow: bool = False) -> Any:
    """What came of some work beside the server."""
    return call.studio.beside.answer(title, work, *arguments, is_slow=is_slow)


def picture(call: Call, work: Callable[..., str], *arguments: Any, is_slow: bool = False) -> Response:
    """A drawing as a file of its own, which a browser may keep: its address holds all that it follows from."""
    drawn = call.studio.beside.answer("drawing", work, *arguments, is_slow=is_slow, wait=_PICTURE_WAIT)
    headers = {"content-security-policy": POLICY, "cache-control": "private, max-age=31536000, immutable"}
    return Response(drawn, media_type="image/svg+xml", headers=headers)


def picture_address(opened: OpenedRelease, name: str, **query: Any) -> str:
    """Where a picture of a release is."""
    asked = urlencode({key: value for key, value in query.items() if value not in ("", None, False)})
    return f"/releases/{opened.digest}/{name}.svg" + (f"?{asked}" if asked else "")


def whole(text: str | None, name: str, most: int = 10_000) -> int:
    """A small whole number of an address."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) > most:
        raise ParameterError(f"{name} is not a whole number up to {most:,}")
    return int(text)
