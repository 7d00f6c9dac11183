"""An upload: a form with one file, written to disk as it comes, bounded, readable by its owner alone.

The token of the form comes before the file, and nothing is written before it was checked. A file that is cut off or too
large is removed again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from starlette.requests import Request

from spinney.errors import FileError
from spinney.extras import load_optional
from spinney.studio.errors import PageError
from spinney.studio.pages import TOKEN, check_token
from spinney.studio.places import DUCKDB_ENDINGS, TABLE_ENDINGS
from spinney.studio.workspace import tidy_name

ENDINGS = (*TABLE_ENDINGS, *DUCKDB_ENDINGS)
_LONGEST_FIELD = 1_000


class _Parts:
    """What the parser of a multipart form calls: fields are kept, the file goes to disk."""

    def __init__(self, request: Request, folder: Path) -> None:
        self._request, self._folder = request, folder
        self._header, self._value = b"", b""
        self._headers: dict[str, str] = {}
        self._field, self._text = "", b""
        self.file: IO[bytes] | None = None
        self.path: Path | None = None
        self.is_whole = False

    def on_part_begin(self) -> None:
        self._headers, self._header, self._value, self._text = {}, b"", b"", b""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end][:_LONGEST_FIELD]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end][:_LONGEST_FIELD]

    def on_header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value.decode("utf-8", "replace")
        self._header, self._value = b"", b""

    def on_headers_finished(self) -> None:
        parse = load_optional("python_multipart.multipart", "an upload", extra="studio").parse_options_header
        _kind, options = parse(self._headers.get("content-disposition", ""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        name = options.get(b"filename")
        if name is None or self._field != "file":
            return
        check_token(self._request, self._request.state.form_token)
        if self.path is not None:
            raise PageError("One file can be sent at a time; put several into a folder that the studio can open.")
        self.path = _free_path(self._folder, name.decode("utf-8", "replace"))
        self.file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self.file is not None:
            self.file.write(data[start:end])
        elif len(self._text) < _LONGEST_FIELD:
            self._text += data[start:end]

    def on_part_end(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None
        elif self._field == TOKEN:
            self._request.state.form_token = self._text.decode("utf-8", "replace")

    def on_end(self) -> None:
        self.is_whole = True


async def received(request: Request, folder: Path) -> Path:
    """The file of an upload, in a folder; an error where it is none, or is not what the studio opens."""
    multipart = load_optional("python_multipart.multipart", "an upload", extra="studio")
    kind, options = multipart.parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise PageError("The studio could not read what was sent. Choose a file and send it again.")
    request.state.form_token = None
    parts = _Parts(request, folder)
    names = [name for name in dir(parts) if name.startswith("on_")]
    parser: Any = multipart.MultipartParser(options[b"boundary"], {name: getattr(parts, name) for name in names})
    try:
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
        check_token(request, request.state.form_token)
        if parts.path is None or not parts.is_whole:
            raise PageError("No file came with the form; choose one and send it again.")
        if parts.path.stat().st_size == 0:
            raise PageError("The file is empty.")
    except BaseException as err:
        if parts.file is not None:
            parts.file.close()
        if parts.path is not None:
            parts.path.unlink(missing_ok=True)
        if isinstance(err, OSError) and not isinstance(err, FileError):
            raise PageError(f"The file cannot be kept in the workspace: {err.strerror}.") from None
        if isinstance(err, multipart.FormParserError):
            raise PageError("The upload was cut off. Choose the file and send it again.") from None
        raise
    return parts.path


def _free_path(folder: Path, given: str) -> Path:
    """A place for a file of this name: its own name, or that with a number."""
    base = given.replace("\\", "/").rpartition("/")[2]
    ending = next((ending for ending in ENDINGS if base.lower().endswith(ending)), None)
    if ending is None:
        raise PageError(
            f"A table is a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; this one does not."
        )
    stem = tidy_name(base[: -len(ending)])
    names = (f"{stem}{ending}" if n == 1 else f"{stem}-{n}{ending}" for n in range(1, 100_000))
    return next(path for path in (folder / name for name in names) if not path.exists())
