"""Pictures with an address of their own: drawings of the report as SVG files that bring their colours, light and dark.

A picture is a file that runs nothing and refers to nothing: its policy allows the one style sheet that is inside of it,
known by its hash, and images that it holds itself. Pictures follow from a release and what was asked, so a browser may
keep them.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

from spinney.report.draw_columns import LINE_HEIGHT, MOST_BARS, WIDTH, column_drawing
from spinney.report.draw_graph import graph_drawing
from spinney.report.draw_map import map_drawing
from spinney.report.draw_overview import belief_drawing, budget_drawing
from spinney.report.draw_pairs import uncertainty_drawing
from spinney.studio.releases.answering import answered
from spinney.studio.releases.conditioned import columns_under
from spinney.studio.releases.described import overview
from spinney.studio.releases.draw_answers import answers_drawing, pair_drawing
from spinney.studio.releases.loaded import contents, maps
from spinney.studio.releases.paired import pair_table

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


# ------------------------------------------------------------------------------------------- in the process beside it


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
    return standalone(graph_drawing(found.model["graph"]) if which == "graph" else uncertainty_drawing(found.pairs))
