"""Sources read as trees of syntax, for tests of what no module may do."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def nodes(source: str, words: Iterable[str]) -> Iterator[ast.AST]:
    """All nodes of a source, or none where no word of these stands in it: most sources need not be parsed then.

    A name stands in the text of whoever uses it, so a test that looks for nodes with these names loses nothing.
    """
    if any(word in source for word in words):
        yield from ast.walk(ast.parse(source))
