"""A notebook as a Markdown page: cells in their order, with the outputs that were saved with them."""

from __future__ import annotations

import base64
import re
from typing import Any

import nbformat

_IMAGES = {"image/svg+xml": "svg", "image/png": "png"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def notebook_page(text: str, name: str) -> tuple[str, dict[str, bytes]]:
    """Markdown of a notebook, and its pictures by their file names.

    Args:
        text: the notebook's file.
        name: its name without ending, by which its pictures are called.
    """
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in nbformat.reads(text, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(_fenced(cell.source, "python"))
            parts += [_output(one, name, pictures) for one in cell.outputs]
    parts.append(f"[This page as a notebook]({name}.ipynb)")
    return "\n\n".join(part for part in parts if part) + "\n", pictures


def _output(output: Any, name: str, pictures: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        return _fenced(_COLOURS.sub("", output.text), "text") if output.name == "stdout" else ""
    if output.output_type == "error":
        return _fenced(f"{output.ename}: {output.evalue}", "text")
    data = output.data
    for kind, ending in _IMAGES.items():
        if kind in data:
            file = f"{name}-{len(pictures) + 1}.{ending}"
            pictures[file] = data[kind].encode() if ending == "svg" else base64.b64decode(data[kind])
            return f"![Output]({file})"
    if "<table" in data.get("text/html", ""):
        return re.sub(r"\n\s*\n", "\n", re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL))
    return _fenced(_COLOURS.sub("", data.get("text/plain", "")), "text")


def _fenced(text: str, language: str) -> str:
    text = text.rstrip("\n")
    return f"```{language}\n{text}\n```" if text.strip() else ""
