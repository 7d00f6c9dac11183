"""An extension of griffe: the examples in docstrings become blocks of code, where they stand among the sentences."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*)+", re.MULTILINE)


def with_blocks(text: str) -> str:
    """A docstring whose examples are fenced."""

    def fenced(match: re.Match[str]) -> str:
        indent = re.match(r"[ \t]*", match[0])[0]  # type: ignore[index]  # it matches the empty string too
        return f"{indent}```pycon\n{match[0].rstrip()}\n{indent}```\n"

    return _EXAMPLE.sub(fenced, text)


class FencedExamples(griffe.Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence those of one object."""
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)
