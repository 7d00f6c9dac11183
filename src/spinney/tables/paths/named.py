"""Which files a lazy table reads, if its library reports them, so that one file by two names is noticed there too.

polars tells the files of a plan, DuckDB the text of a query, pyarrow the files of a dataset, Spark those of a data
frame. Each list is what one reader made of one pattern or list. Nothing is read but names; a library that does
not report them is trusted, which `docs/limitations.md` says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from spinney.tables.paths.repeats import refuse_links, refuse_repeats

_TEXT = r"'(?:[^']|'')*'"
_IDENTIFIER = r'"(?:[^"]|"")*"'
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
# Where a query names files: FROM 'x', JOIN 'x', read_csv('x'), parquet_scan(['x', 'y']). DuckDB 1 writes FROM "x".
_FILES = re.compile(
    rf"(?:\b(?:from|join)\s+|\b(?:read_\w+|\w+_scan)\s*\(\s*)"
    rf"(\[\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\]|{_TEXT}|{_IDENTIFIER})",
    re.IGNORECASE,
)


def refuse_repeated_reads(reads: Iterable[Sequence[str]]) -> None:
    """Raise if one reader reads a file twice, or two readers the same file by different names.

    A query that reads a file twice by one name, such as a join of a table with itself, says so on purpose.
    """
    names: set[str] = set()
    for read in reads:
        local = [local_path(name) for name in read]
        refuse_repeats(local)
        names.update(local)
    refuse_links(sorted(names))


def local_path(name: str) -> str:
    """The path behind an address of this machine; other addresses and paths as they are."""
    return unquote(urlsplit(name).path) if name.lower().startswith("file:/") else name


def polars_reads(frame: Any) -> list[list[str]]:
    """Files of each scan in the plan of a LazyFrame."""
    reads: list[list[str]] = []
    try:
        plan = frame._ldf.visit()
        waiting = [plan.get_node()]
        while waiting:
            plan.set_node(waiting.pop())
            waiting += plan.get_inputs()
            try:
                paths = getattr(plan.view_current_node(), "paths", None)
            except NotImplementedError:  # a step that polars does not describe
                continue
            if paths:
                reads.append([os.fspath(path) for path in paths])
    except Exception:  # versions differ in what they tell
        return reads
    return reads


def duckdb_reads(relation: Any) -> list[list[str]]:
    """Files that DuckDB finds for each pattern, or list of patterns, that the query behind a relation reads."""
    import duckdb

    reads: list[list[str]] = []
    try:
        query = _COMMENT.sub(" ", str(relation.sql_query()))
        named = re.findall(rf"{_TEXT}|{_IDENTIFIER}", query)
        if not named:
            return reads
        with duckdb.connect(":memory:") as connection:
            for texts in _FILES.findall(query):
                quoted = re.findall(rf"{_TEXT}|{_IDENTIFIER}", texts)
                patterns = [text[1:-1].replace(text[0] * 2, text[0]) for text in quoted]
                reads.append([name for pattern in patterns for name in _found(connection, pattern)])
            # However else a query may name a file: in a list that it makes, or as an identifier.
            others = [text[1:-1].replace(text[0] * 2, text[0]) for text in named]
            reads += [[name] for name in others if os.path.isfile(name)]
    except Exception:  # not every relation has a text
        return reads
    return reads


def _found(connection: Any, pattern: str) -> list[str]:
    """Files on this machine that a pattern means to DuckDB."""
    if "://" in pattern:
        return []
    return [name for (name,) in connection.execute("SELECT file FROM glob(?)", [pattern]).fetchall()]


def dataset_reads(dataset: Any) -> list[list[str]]:
    """Files of a pyarrow dataset, with those of all datasets that it is made of in one list."""
    return [_dataset_files(dataset)]


def _dataset_files(dataset: Any) -> list[str]:
    children = getattr(dataset, "children", None)
    if children is not None:
        return [name for child in children for name in _dataset_files(child)]
    if not hasattr(dataset, "files"):  # in memory
        return []
    files, system = dataset.files, dataset.filesystem
    while type(system).__name__ == "SubTreeFileSystem":
        files = [os.path.join(system.base_path, name) for name in files]
        system = system.base_fs
    is_local = type(system).__name__ == "LocalFileSystem"
    return [name if is_local else f"{system.type_name}://{name}" for name in files]


def spark_reads(frame: Any) -> list[list[str]]:
    """Files behind a Spark data frame, by one name each."""
    try:
        return [sorted(frame.inputFiles())]
    except Exception:  # a server may not tell
        return []
