"""How the strings of a table spell values: what was stated of a CSV file, for one of its columns."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """The marks of a CSV and the format of its dates; None is ISO 8601. In memory, everything is at its default."""

    decimal: str = "."
    delimiter: str = ","
    date_format: str | None = None


PLAIN = Spelling()


def option(name: str, value: str) -> str:
    """An option as it is said to the command and to the library."""
    word = "tab" if value == "\t" else shlex.quote(value)
    return f"--{name.replace('_', '-')} {word} (in Python: sp.CSV(path, {name}={value!r}))"
