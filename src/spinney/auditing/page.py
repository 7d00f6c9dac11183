"""The audit as one self-contained HTML page: bars of lower bounds beside claims, and every game in a table."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.extras import load_optional

if TYPE_CHECKING:
    from spinney.auditing.claims import Finding
    from spinney.auditing.result import AuditResult

_COLOURS = {"exceeds": "#b3261e", "open": "#9a9a9a", "": "#2f6f4f"}


def page(result: AuditResult) -> str:
    """The page as text. Everything in it is escaped, and nothing is loaded from elsewhere."""
    from spinney.auditing.result import HEADS, cells

    jinja2 = load_optional("jinja2", "a page of an audit")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((Path(__file__).parent / "templates" / "audit.html").read_text("utf-8"))
    looks = [_look_of(verdict.finding) for verdict in result.verdicts]
    rows = [(cells(verdict), look, verdict.path) for verdict, look in zip(result.verdicts, looks, strict=True)]
    verdict = result.verdict.replace(" ", "-")
    return str(template.render(heads=HEADS, rows=rows, summary=result.summary(), verdict=verdict, bars=_bars(result)))


def _look_of(finding: Finding) -> str:
    """The class of a row of the table."""
    return "exceeds" if finding.exceeds else "" if finding.tells else "open"


def table(result: AuditResult) -> str:
    """The games as an HTML table, for notebooks."""
    from spinney.auditing.result import HEADS, cells

    head = "".join(f"<th>{escape(text)}</th>" for text in HEADS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells(verdict)) + "</tr>" for verdict in result.verdicts
    )
    said = "".join(f"<p>{escape(line)}</p>" for line in result.summary())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"


def _bars(result: AuditResult) -> str:
    """Of each family the bound that comes nearest to its claim, as a share of it, in SVG."""
    matplotlib = load_optional("matplotlib", "a page of an audit")
    matplotlib.use("svg")
    figure_module: Any = load_optional("matplotlib.figure", "a page of an audit")
    from spinney.auditing.result import ratio_of

    families = list(result.families.items())[::-1]
    figure = figure_module.Figure(figsize=(7, 0.6 + 0.32 * len(families)), layout="constrained")
    axes = figure.subplots()
    colours = [_COLOURS[_look_of(verdict.finding)] for _, verdict in families]
    axes.barh([name for name, _ in families], [ratio_of(verdict) for _, verdict in families], color=colours)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("lower bound, as a share of the claim")
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "spinney", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
