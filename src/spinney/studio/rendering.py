"""Templates into pages: everything that they are given is escaped, and what is not printable is shown as an escape."""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.responses import HTMLResponse

from spinney.extras import load_optional
from spinney.fragments import finalized
from spinney.report.page import rounded
from spinney.report.promise_part import percent
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
    found.filters |= {"counted": counted, "rounded": rounded, "percent": percent}
    found.globals["version"] = full_version()
    return found


def rendered(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page; its policy and all other headers come from `security`."""
    return HTMLResponse(environment().get_template(template).render(**context), status_code=status)


def counted(number: int, what: str) -> str:
    """A number of things in words: 1 row, 2,000 rows."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"
