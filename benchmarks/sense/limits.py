"""What is wanted of a release's rows, figure by figure, and what was missed.

A line is one figure of both tables; wanted is how far the synthetic one may be from the real one. Lines without a
limit are there to be read. A limit counts as missed in a release, so the end says in how many of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spinney.text import aligned

MOST_OFF = 0.02  # of a share
KS_RELATED = 0.005
_RELATED = 0.05  # a column is related where so many real rows hold one of its relations
KS_ORDERED, MEAN_ORDERED = 0.005, 0.01
LAG, LONGEST_LAG = 1.05, 1.5  # times
WEEKENDS = 0.005
CODES, CODES_TOGETHER = 1.3, 0.6  # times the real rows
DISTINCT, SPREAD = (0.5, 1.5), (0.7, 1.5)
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: None where there is none of the real table, or no limit."""

    what: str
    real: float | None
    synthetic: float
    wanted: str = ""
    is_met: bool | None = None


def lines(figures: Mapping[str, Any]) -> Iterator[Line]:
    """The figures of one release as lines, what is wanted beside them."""
    sense = figures["sense"]
    related: set[str] = set()
    for one in sense["related"]:
        real, drawn = _both(one["shares"])
        related |= {one["column"], one["base"]} if real >= _RELATED else set()
        relation = "=" if one["percent"] == 100 else f"= {one['percent']} % of"
        yield _near(f"share {one['column']} {relation} {one['base']}", real, drawn)
    for one in sense["grain"]:
        for multiple, shares in one["multiples"].items():
            yield _near(f"multiples of {one['step'] * int(multiple):g} {one['column']}", *_both(shares))
        yield _within(f"distinct values {one['column']}", *_both(one["distinct"]), DISTINCT)
    for one in sense["days"]:
        real, drawn = _both(one["weekends"])
        if real == 0:
            yield Line(f"weekends {one['column']}", real, drawn, f"<= {WEEKENDS}", drawn <= WEEKENDS)
        else:
            yield _near(f"weekends {one['column']}", real, drawn)
        yield _near(f"month ends {one['column']}", *_both(one["month_ends"]))
    ordered: set[str] = set()
    dates = {one["column"] for one in sense["days"]}
    for one in sense["lags"]:
        ordered |= {one["column"], one["other"]} if one["is_stated"] else set()
        yield from _lag(one, is_of_days=one["column"] in dates)
    for one in sense["codes"]:
        real, drawn = _both(one["rows"])
        what = f"rows with code {', '.join(one['values'])} {one['columns'][0]}"
        yield Line(what, real, drawn, f"<= {CODES} x", drawn <= CODES * real)
    for one in sense["together"]:
        real, drawn = _both(one["rows"])
        what = f"rows with codes in {', '.join(one['columns'])}"
        yield Line(what, real, drawn, f">= {CODES_TOGETHER} x", drawn >= CODES_TOGETHER * real)
    for name, column in figures["columns"].items():
        limit = KS_ORDERED if name in ordered else KS_RELATED if name in related else None
        ks = column["ks"]
        yield Line(f"KS {name}", None, ks, *(() if limit is None else (f"<= {limit}", ks <= limit)))
        if name in ordered and column["mean_real"]:
            off = column["mean"] / column["mean_real"] - 1
            is_met = abs(off) <= MEAN_ORDERED
            yield Line(f"mean {name}", column["mean_real"], column["mean"], f"within {MEAN_ORDERED:.0%}", is_met)
        if column["spread"] is not None:
            yield _within(f"sd ratio {name}", 1.0, column["spread"], SPREAD)
    if figures["lost"] is not None:
        yield Line("values lost of the target", 0.0, figures["lost"], "0", figures["lost"] == 0)
    if figures["auc"] is not None:
        yield Line("AUC of XGBoost on rows held back", *_both(figures["auc"]))
    yield Line("seconds of the fit", None, figures["fit_seconds"])
    yield Line("seconds of the sample", None, figures["sample_seconds"])


def _lag(one: Mapping[str, Any], *, is_of_days: bool) -> Iterator[Line]:
    pair = f"{one['column']} to {one['other']}"
    for name, figure, most in (("median", "median", LAG), ("90 %", "most_90", LAG), ("99 %", "most_99", None)):
        real, drawn = _both(one[figure])
        is_near = most is None or max(drawn, _NOTHING) <= most * real <= most**2 * max(drawn, _NOTHING)
        limit = (f"x {most}", is_near) if is_of_days and most is not None else ()
        yield Line(f"lag {name} {pair}", real, drawn, *limit)
    real, drawn = _both(one["longest"])
    limit = (f"<= {LONGEST_LAG} x", drawn <= LONGEST_LAG * real) if is_of_days else ()
    yield Line(f"lag longest {pair}", real, drawn, *limit)
    real, drawn = _both(one["broken"])
    yield Line(f"order broken {pair}", real, drawn, *(("0", drawn == 0) if one["is_stated"] else ()))


def _near(what: str, real: float, drawn: float) -> Line:
    return Line(what, real, drawn, f"within {MOST_OFF}", abs(drawn - real) <= MOST_OFF)


def _within(what: str, real: float, drawn: float, ends: tuple[float, float]) -> Line:
    is_met = ends[0] * real <= drawn <= ends[1] * real
    return Line(what, real, drawn, f"{ends[0]} to {ends[1]} x", is_met)


def _both(shares: Mapping[str, float]) -> tuple[float, float]:
    return shares["real"], shares["synthetic"]


# ----------------------------------------------------------------------------------------------------- several releases


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure over all releases of a table: means, and in how many its limit was missed."""

    table: str
    what: str
    real: float | None
    synthetic: float
    worst: tuple[float, float]  # the smallest and the largest synthetic figure
    wanted: str
    n_missed: int
    n_releases: int


def verdicts(outcomes: Iterable[Mapping[str, Any]]) -> list[Verdict]:
    """Every figure of every table, over its releases."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for outcome in outcomes:
        for line in lines(outcome["figures"]):
            found[outcome["table"], line.what].append(line)
    return [_verdict(table, what, group) for (table, what), group in found.items()]


def _verdict(table: str, what: str, group: Sequence[Line]) -> Verdict:
    drawn = [line.synthetic for line in group]
    reals = [line.real for line in group if line.real is not None]
    return Verdict(
        table,
        what,
        sum(reals) / len(reals) if reals else None,
        sum(drawn) / len(drawn),
        (min(drawn), max(drawn)),
        group[0].wanted,
        sum(line.is_met is False for line in group),
        len(group),
    )


def shown(found: Sequence[Verdict]) -> str:
    """All figures as a table, table by table, and how many limits were missed."""
    rows: list[Sequence[str]] = [("figure", "real", "synthetic", "smallest", "largest", "wanted", "")]
    table = ""
    for one in found:
        if one.table != table:
            table = one.table
            rows.append((f"{table}, {one.n_releases} releases", *[""] * 6))
        missed = "" if not one.wanted else f"MISSED in {one.n_missed}" if one.n_missed else "ok"
        figures = ("" if value is None else f"{value:.4g}" for value in (one.real, one.synthetic, *one.worst))
        rows.append((f"  {one.what}", *figures, one.wanted, missed))
    limits = [one for one in found if one.wanted]
    missed = sum(one.n_missed > 0 for one in limits)
    return "\n".join([*aligned(rows, right=range(1, 5)), "", f"{len(limits) - missed} of {len(limits)} limits kept"])


def plain(found: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [asdict(one) for one in found]
