"""The types of a table's columns, told apart as far as kinds of columns care."""

from __future__ import annotations

from typing import Any, Literal

import narwhals as nw

Group = Literal["float", "whole", "boolean", "string", "date", "datetime", "zoned datetime", "time", "unknown", "other"]


def group_of(dtype: Any) -> Group:
    """The group of a narwhals dtype. "whole" holds integers and decimals; columns of nulls alone may be "unknown"."""
    if dtype.is_numeric():
        return "float" if dtype.is_float() else "whole"
    if isinstance(dtype, nw.Boolean):
        return "boolean"
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return "string"
    if isinstance(dtype, nw.Date):
        return "date"
    if isinstance(dtype, nw.Datetime):
        return "datetime" if dtype.time_zone is None else "zoned datetime"
    if isinstance(dtype, nw.Time):
        return "time"
    return "unknown" if isinstance(dtype, nw.Unknown) else "other"
