"""Several releases side by side: what each promises, every shared column of each, and how far apart they are."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from spinney.studio.errors import PageError
from spinney.studio.pages import Call, Pages
from spinney.studio.releases.compared import distances, shared_columns
from spinney.studio.releases.conditioned import columns_under
from spinney.studio.releases.opened import OpenedRelease
from spinney.studio.releases.pictures import column_size
from spinney.studio.view_parts import answer, overview_of, patient, picture_address

pages = Pages(nav=("Side by side", "/compare"))

_MOST = 4
_LONGEST_NAME = 500


@pages.get("/compare")
@patient
def compare(call: Call) -> Response:
    """Choose releases, and see them beside each other."""
    wanted = list(dict.fromkeys(call.query.getlist("release")))
    if not wanted:
        return _chooser(call, [], "")
    try:
        opened = _opened(call, wanted)
    except PageError as err:
        return _chooser(call, wanted, str(err))
    found = [overview_of(call, one) for one in opened]
    shared = answer(call, "comparing schemas", shared_columns, tuple(one.at for one in opened))
    shown = [answer(call, f"counting every column of {one.name}", columns_under, *one.at, "") for one in opened]
    apart = [
        answer(call, "drawing rows to compare", distances, opened[0].at, other.at, is_slow=True) for other in opened[1:]
    ]
    return call.page(
        "compare.html",
        title="Side by side",
        releases=[{"opened": one, "it": it} for one, it in zip(opened, found, strict=True)],
        columns=[_column(name, opened, shown) for name in shared],
        apart=[{"name": one.name, **far} for one, far in zip(opened[1:], apart, strict=True)],
    )


def _opened(call: Call, wanted: list[str]) -> list[OpenedRelease]:
    if not 2 <= len(wanted) <= _MOST:
        raise PageError(f"Choose two to {_MOST} releases; {len(wanted)} were chosen.")
    shelf = call.studio.shelf
    found = [shelf.by_path(one) if "/" in one[:_LONGEST_NAME] else shelf.by_key(one) for one in wanted]
    if len({one.digest for one in found}) < len(found):
        raise PageError("Two of these files hold the same release; choose others to compare.")
    return found


def _chooser(call: Call, wanted: list[str], fault: str) -> Response:
    return call.page(
        "compare_choose.html",
        title="Side by side",
        status=400 if fault else 200,
        releases=call.studio.shelf.listed(),
        wanted=wanted,
        fault=fault,
    )


def _column(name: str, opened: list[OpenedRelease], shown: list[dict[str, Any]]) -> dict[str, Any]:
    """One column of every release: its picture and its numbers."""
    beside = []
    for one, found in zip(opened, shown, strict=True):
        number = next((n for n, column in enumerate(found["columns"]) if column["name"] == name), None)
        column = None if number is None else found["columns"][number]
        if column is None or not column["bars"]:
            beside.append({"column": None, "address": "", "size": (0, 0)})
            continue
        size = column_size(len(column["bars"]), column["bars_left_out"])
        beside.append({"column": column, "address": picture_address(one, f"column/{number}"), "size": size})
    return {"name": name, "beside": beside}
