"""Templates into pages: everything that they are given is escaped, and what is not printable is shown as an escape."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from starlette.responses import HTMLResponse

from spinney.extras import load_optional
from spinney.fragments import finalized
from spinney.report.page import rounded as number
from spinney.report.promise_part import percent as at_most
from spinney.version import full_version


@cache
def environment() -> Any:
    """Jinja with the studio's templates."""
    jinja2 = load_optional("jinja2", "the studio", extra="studio")
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("spinney", "studio/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: finalized(value, 400_000),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "counted": counted,
        "moment": moment,
        "size": size,
        "percent": percent,
        "rounded": rounded,
        "kept": kept,
    }
    found.filters |= {"number": number, "at_most": at_most}  # as reports show figures
    found.globals["version"] = full_version()
    return found


def rendered(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page; its policy and all other headers come from `security`."""
    return HTMLResponse(environment().get_template(template).render(**context), status_code=status)


def kept(value: Any) -> Any:
    """What a field holds, escaped and otherwise as it is: it comes back with the form, and has to be the same then."""
    markupsafe = load_optional("markupsafe", "the studio", extra="studio")
    return markupsafe.escape("" if value is None else str(value))


def counted(number: int, what: str) -> str:
    """A number of things in words: 1 row, 2,000 rows."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def moment(text: str) -> str:
    """A time on record as people read it, in the time of this machine."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %B %Y, %H:%M").lstrip("0")
    except ValueError:
        return text


def size(n_bytes: int) -> str:
    """The size of a file as people read it."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= one:
            return f"{n_bytes / one:.1f} {unit}"
    return f"{n_bytes} bytes"


def percent(share: float, digits: int = 1) -> str:
    """A share as people read it."""
    return f"{100 * share:.{digits}f} %"


def rounded(value: float) -> str:
    """A number as people read it: whole where it is large, and with two digits where it is small."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"
