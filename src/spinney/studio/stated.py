"""What a draft states about its table: the schema of its text, with all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spinney.errors import SchemaError
from spinney.schema.plain import parse_toml
from spinney.schema.reading import SchemaReading, read_stated
from spinney.studio.errors import PageError
from spinney.studio.places import Root
from spinney.studio.workspace import Workspace

# Entries of a schema that name a file.
_FILES = ("values_from", "within")


def read_draft(workspace: Workspace, draft: Mapping[str, Any]) -> SchemaReading:
    """The schema of a draft; files that it names have to lie where tables may lie."""
    folder = Path(draft["folder"])
    outside = [
        f"{name} = {path!r} is outside of the folder that this studio was opened for; put the file into it"
        for name, path in _named_files(draft["schema"])
        if not _may_be_read(workspace, folder / path)
    ]
    return SchemaReading(None, tuple(outside)) if outside else read_stated(draft["schema"], folder)


def _named_files(text: str) -> Iterator[tuple[str, str]]:
    try:
        waiting: list[Any] = [parse_toml(text)]
    except SchemaError:
        return
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            yield from ((name, entry[name]) for name in _FILES if isinstance(entry.get(name), str))
            waiting += entry.values()
        elif isinstance(entry, list):
            waiting += [item for item in entry if isinstance(item, (dict, list))]


def _may_be_read(workspace: Workspace, path: Path) -> bool:
    for root in (workspace.root, Root(workspace.tables_folder)):
        try:
            root.inside(str(path))
        except PageError:
            continue
        return True
    return False
