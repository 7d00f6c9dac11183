"""Markdown as a code host reads it, made into Markdown as Python-Markdown reads it.

Our pages are read on code hosts too, where a list may follow a paragraph without a blank line, and what belongs to an
item is indented by the width of its mark. Python-Markdown wants a blank line there, and four spaces a level. Comments
that tell our tests which snippets to run are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"^\s*(```|~~~)")
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)(?=\S)")
_RUNS = re.compile(r"<!-- runs: [^>]*-->\n")


def for_python_markdown(text: str) -> str:
    """The same page, with lists as Python-Markdown wants them."""
    return "".join(_lists(_RUNS.sub("", text).splitlines(keepends=True)))


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Lines with whether they are prose; those of code are not."""
    is_code = False
    for line in text.splitlines(keepends=True):
        is_fence = FENCE.match(line) is not None
        yield line, not (is_code or is_fence)
        is_code ^= is_fence


def _lists(lines: list[str]) -> Iterator[str]:
    levels: list[int] = []  # how far the contents of each open item are indented
    is_code, before = False, ""
    for line in lines:
        is_fence = FENCE.match(line) is not None
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        item = None if is_code else ITEM.match(line)
        was_in_list = bool(levels)
        if line.strip() and not is_code:
            while levels and indent < levels[-1] and (item or not before.strip() or indent < levels[-1] - 3):
                levels.pop()
        if item:
            if before.strip() and not was_in_list:
                yield "\n"
            yield "    " * len(levels) + bare
            levels.append(item.end())
        elif levels and line.strip():
            yield "    " * len(levels) + line[min(indent, levels[-1]) :]
        else:
            yield line
        is_code ^= is_fence
        before = line
