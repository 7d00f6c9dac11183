"""Texts of a schema: whole characters, which every file can hold.

A Python string may hold half of a pair of surrogates, which UTF-8 cannot write. Such a string would be found out when a
release is saved, after it was paid for, so it is refused where it is stated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spinney.errors import SchemaError
from spinney.shown import brief


def check_characters(values: Iterable[Any], about: str = "") -> None:
    """Raise a SchemaError that begins with `about` if a text among some values holds half a character."""
    texts = [value for value in values if isinstance(value, str)]
    if _is_whole("".join(texts)):
        return
    half = next(text for text in texts if not _is_whole(text))
    raise SchemaError(f"{about}{brief(half)} holds half a character, which no file can hold; correct it")


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
