"""Error bars as a page to read: bars of characters, filled up to the low end of an interval, dashed up to the high one.

age          certified, all bars at once
  17..22    ########-             4,321   4,233 to 4,409
"""

from __future__ import annotations

from datetime import datetime, time
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from spinney.release.answers.answer import Answer, shown_label, shown_level, shown_number
from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.release.answers.bars import ColumnBars, ErrorBars, PairBars

WIDTH = 100
_LENGTH = 30  # of a full bar
_MOST_COLUMNS = 40
_MOST_LINES = 12  # of a column
_MOST_PAIRS = 30
_LONGEST = 28  # of a label


def page(bars: ErrorBars) -> str:
    """The whole page."""
    if bars.refusal:
        lines = wrap(f"there are no error bars: {bars.refusal}", WIDTH, initial_indent="  ", subsequent_indent="  ")
        return "\n".join(printable(line) for line in lines)
    shown = bars.columns[:_MOST_COLUMNS]
    lines = [f"  error bars of columns, in {bars.who} ({shown_level(bars.level)})"]
    for column in shown:
        lines += _column(column)
    lines += _more(len(bars.columns) - len(shown))
    reasons = {one.why: None for column in shown for one in column.answers or () if one.statement == "not supported"}
    for why in reasons:
        lines += wrap(f"not supported: {why}", WIDTH, initial_indent="    ", subsequent_indent="      ")
    if bars.pairs:
        lines += ["", *_pairs(bars)]
    return "\n".join(printable(line).rstrip() for line in lines)


def shown_bar(value: Any) -> str:
    """A value or a range for people: ends of reals, just below the next range, to six digits, of timestamps in days."""
    if isinstance(value, datetime):
        is_day = value.time() in (time.min, time(23, 59, 59, 999_999), time(23, 59, 59))
        return f"{value:%Y-%m-%d}" if is_day else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return shown_label(tuple(shown_bar(end) for end in value))
    return shown_label(value)


def in_order(column: ColumnBars) -> list[tuple[str, Answer]]:
    """Bars with their labels: numbers in their order, values of a long list the commonest first."""
    assert column.answers is not None
    found = [(shown_bar(label), answer) for (label,), answer in zip(column.answers.labels, column.answers, strict=True)]
    if len(found) > _MOST_LINES and not any(isinstance(label, tuple) for (label,) in column.answers.labels):
        found.sort(key=lambda bar: -bar[1].estimate)
    return found


def _column(column: ColumnBars) -> list[str]:
    name = f"    {cut(column.name, 40)}"
    if column.answers is None:
        return wrap(f"{column.name}: {column.refusal}", WIDTH, initial_indent="    ", subsequent_indent="      ")
    held = ", all bars at once" if column.answers.simultaneous and len(column.answers) > 1 else ""
    every = in_order(column)
    shown = every[:_MOST_LINES]
    top = max([1.0, *(answer.high if answer.high is not None else answer.estimate for _, answer in every)])
    labels = [cut(label, _LONGEST) for label, _ in shown]
    widest = max(map(len, labels))
    lines = [f"{name}   {column.statement}{held}"]
    for label, (_, answer) in zip(labels, shown, strict=True):
        ends = "no interval"
        if answer.low is not None and answer.high is not None:
            ends = f"{shown_number(answer.low, 0)} to {shown_number(answer.high, 0)}"
        lines.append(
            f"      {label:<{widest}}  {_bar(answer, top):<{_LENGTH}}  {shown_number(answer.estimate, 0):>11}   {ends}"
        )
    return lines + _more(len(every) - len(shown), "      ")


def _bar(answer: Answer, top: float) -> str:
    low, high = (
        (answer.estimate, answer.estimate)
        if answer.low is None or answer.high is None
        else (
            answer.low,
            answer.high,
        )
    )
    filled = round(_LENGTH * max(low, 0.0) / top)
    return "#" * filled + "-" * max(round(_LENGTH * high / top) - filled, 0)


def _pairs(bars: ErrorBars) -> list[str]:
    shown = bars.pairs[:_MOST_PAIRS]
    labels = [cut(" and ".join(pair.columns), 48) for pair in shown]
    widest = max(map(len, labels))
    lines = ["  pairs: how far a cell may be off in a table of three by three parts, in per cent of all rows"]
    lines += [f"    {label:<{widest}}  {_figure(pair)}" for label, pair in zip(labels, shown, strict=True)]
    lines += _more(len(bars.pairs) - len(shown))
    n_none = sum(pair.share is None for pair in bars.pairs[_MOST_PAIRS:])
    if n_none:
        lines.append(f"    of these, {n_none:,} are not supported")
    if bars.n_left_out:
        lines += wrap(
            f"{bars.n_left_out:,} other pairs were not looked at; name columns to see theirs",
            WIDTH,
            initial_indent="    ",
            subsequent_indent="    ",
        )
    return lines


def _figure(pair: PairBars) -> str:
    if pair.share is None:
        return f"{'-':>10}   {pair.statement}"
    held = ", all cells at once" if pair.simultaneous else ""
    together = ", counted together" if pair.is_counted else ""
    return f"± {100 * pair.share:6.2f} %   {pair.statement}{held}{together}"


def _more(n: int, indent: str = "    ") -> list[str]:
    return [f"{indent}and {n:,} more"] if n > 0 else []


def cut(text: str, width: int) -> str:
    """A text that is no longer than this; a long one loses its end."""
    return text if len(text) <= width else text[: width - 1] + "…"
