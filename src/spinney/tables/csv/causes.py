"""Why a value of a CSV cannot be read, from its spelling: in words that help, and that never quote it.

The kind of spelling is told to the holder: that there is a percent sign, not which percentage.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from decimal import Decimal, InvalidOperation

from spinney.columns import Boolean, Category, Column, Date, Datetime, Integer, Real
from spinney.tables.csv.format import CSV, option
from spinney.tables.texts import MISSING

_NUMERIC_DAY = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}")
_OFFSET = re.compile(r"(Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)
_CURRENCY = re.compile(
    r"^(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)\b|\b(EUR|USD|GBP|CHF|JPY|CAD|AUD|INR|CNY)$", re.IGNORECASE
)
_SPACES = " \t\u00a0\u202f\u2009"


def cause(text: str, column: Column, name: str, csv: CSV) -> str:
    """What is wrong with one value, and what to do about it."""
    if isinstance(column, (Date, Datetime)):
        return _date_cause(text.strip(), column, csv.date_format_of(name))
    if isinstance(column, Boolean):
        return "it is neither true nor false; write true and false, or 1 and 0"
    if isinstance(column, Category):
        return _category_cause(text, column, csv)
    if isinstance(column, (Real, Integer)):
        return _number_cause(text.strip(), column, csv)
    return "clean the column or change its type"


def _number_cause(text: str, column: Column, csv: CSV) -> str:
    if "%" in text:
        return "it has a percent sign; write the number without it"
    if any(unicodedata.category(mark) == "Sc" for mark in text) or _CURRENCY.search(text):
        return "it has a currency sign; write the number without it"
    digits = text.strip("+-" + _SPACES)
    if re.fullmatch(r"\d{1,3}([\s'’_]\d{3})+([.,]\d+)?", digits):
        return "it has a thousands separator; write the number without it"
    if csv.decimal == "," and re.fullmatch(r"[\d.]+(,\d+)?", digits):
        return (
            "it has a point, and decimal=',' was stated; remove thousands separators, or state the decimal mark that "
            "the file has"
        )
    if csv.decimal == "." and re.fullmatch(r"\d{1,3}(,\d{3})+\.\d+|\d{1,3}(,\d{3}){2,}", digits):
        return "it has a thousands separator; write the number without it"
    if csv.decimal == "." and re.fullmatch(r"[\d.]*,\d+([eE][+-]?\d+)?", digits):
        remedy = "write decimal points" if csv.delimiter == "," else f"state {option('decimal', ',')}"
        return f"it has a comma; remove thousands separators, and for decimal commas {remedy}"
    if isinstance(column, Integer) and _is_number(digits, csv):
        return "it is not a whole number; use Real for this column"
    return "it is not a number; clean the column or change its type"


def _date_cause(text: str, column: Column, date_format: str | None) -> str:
    zone = _zone_cause(text, column, date_format)
    if zone:
        return zone
    if date_format is not None:
        return f"it does not match date_format={date_format!r}, or there is no such day"
    found = _NUMERIC_DAY.match(text)
    if found and not re.match(r"\d{4}-", text):
        mark = found[1]
        time = " %H:%M" if ":" in text else ""
        year = "%Y" if re.search(r"\d{4}", found[0]) else "%y"
        order = f"%Y{mark}%m{mark}%d" if re.match(r"\d{4}", text) else f"%d{mark}%m{mark}{year}"
        first = "" if order.startswith("%Y") else ", with %m before %d where months come first"
        return (
            f"it is not ISO 8601 (2024-01-31); state the format, such as {option('date_format', order + time)}{first}"
        )
    return (
        "it is not a date of ISO 8601 (2024-01-31), or there is no such day; for another spelling state "
        f"{option('date_format', '%d/%m/%Y')}"
    )


def _zone_cause(text: str, column: Column, date_format: str | None) -> str | None:
    """What is wrong if the text is a moment that has an offset and should not, or the other way round."""
    try:
        moment = datetime.fromisoformat(text) if date_format is None else datetime.strptime(text, date_format)
    except ValueError:
        return None
    if moment.tzinfo is not None and isinstance(column, Date):
        return "it has a time zone, so its day is not settled; write days without times"
    if moment.tzinfo is not None and column.timezone is None:  # type: ignore[attr-defined]
        return 'it has a time zone, and the schema states none; state timezone = "UTC" or another in the schema'
    if moment.tzinfo is None and isinstance(column, Datetime) and column.timezone is not None:
        return (
            "it has no time zone, and the schema states one; write the offset as in 2024-01-31T12:00:00+01:00, "
            "or take timezone out of the schema"
        )
    return None


def _category_cause(text: str, column: Category, csv: CSV) -> str:
    if not column.is_text:
        number = text.strip()
        what = "it is a number that the schema does not list" if _is_number(number, csv) else "it is not a number"
        return f"{what}; add it to the list of values or recode the column"
    values = [str(value) for value in column.values]
    if text in MISSING:
        return "it is empty or spells a missing value; declare the column nullable or list the value"
    if text.strip(_SPACES) in values:
        return "it has spaces before or after a value that the schema lists; remove them"
    if text.strip().casefold() in {value.casefold() for value in values}:
        return "it differs from a value that the schema lists in upper and lower case only; recode the column"
    return "it is not in the schema's list of values; recode it, or add it to the list if the column's codebook has it"


def _is_number(text: str, csv: CSV) -> bool:
    try:
        Decimal(text.replace(",", ".") if csv.decimal == "," else text)
    except InvalidOperation:
        return False
    return True
