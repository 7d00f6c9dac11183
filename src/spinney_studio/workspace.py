"""The workspace: a folder in which the studio stores everything, so that a killed server loses nothing.

    tables/     what was uploaded, and the made-up town
    drafts/     what was stated so far about a table and its release, a record each
    looks/      what looks at a draft have found: whether its table fits, and what its budget buys
    jobs/       what was spent: what each job is to do, and how far it came
    releases/   release files, each with a record of where it came from beside it
    ledgers/    ledgers that were made here

Only the owner may read it. One studio works in it at a time. Drafts have a revision: a change names the
revision that it was made from, so that what was changed in another tab is not written over.

    errors         what a page may answer instead of itself
    paths          nothing outside of the opened folder is listed, read or written
    records        small JSON files, written whole or not at all
    workspace      drafts, jobs, releases and ledgers of one studio
    draft schema   the schema of a draft, and the files it names
    tables         what a draft is about, and how the library reads it
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any

import pyarrow as pa
from filelock import FileLock, Timeout

from spinney.errors import FileError, InputError, SchemaError, SpinneyError, redacted
from spinney.files import read_json, write_json, write_whole
from spinney.machine import load_optional
from spinney.schema.plain import parse_toml
from spinney.schema.template import SchemaReading, read_stated
from spinney.tables.csv import CSV
from spinney.tables.paths import is_parquet, list_files
from spinney.tables.preview import file_types

# --------------------------------------------------------------------------------------------------------------- errors
# What a page may answer instead of itself: each error has a status, and a message that may be shown.


class PageError(SpinneyError):
    """A request that cannot be answered as it was asked."""

    status = 400
    title = "This cannot be done"


class MissingPageError(PageError):
    """There is nothing at this address, or not any more."""

    status = 404
    title = "There is no such page"


class RefusedError(PageError):
    """The request does not come from a page of this studio, or without the key to it."""

    status = 403
    title = "This request was refused"


class LockedOutError(RefusedError):
    """The browser has not come through a link of this studio."""

    title = "Open the studio with its link"


class OutdatedError(PageError):
    """A form was filled in while what it is about was changed in another tab."""

    status = 409
    title = "This was changed in another tab"


class BusyError(PageError):
    """As much is under way as this machine should do at once."""

    status = 503
    title = "One moment"


class TooLargeError(PageError):
    """A form or a file is larger than the studio takes."""

    status = 413
    title = "This is too large"


# ---------------------------------------------------------------------------------------------------------------- paths
# Paths inside the folder that the user has opened: nothing outside of it is listed, read or written.
#
# A path comes out of a form as text, relative to the root. It is resolved, links included, and has to lie in the root
# then; a link that leads out of it does not exist for the studio.


TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
DUCKDB_ENDINGS = (".duckdb", ".ddb")
LEDGER_ENDING = ".ledger"
_PATTERN = "*?["
_MOST_LISTED = 2_000
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a folder, as it is offered."""

    name: str
    path: str  # relative to the root
    is_folder: bool
    size: int  # bytes


class Root:
    """The folder that the user has opened."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            raise PageError(f"{str(folder)!r} is not a folder; name one with --root")

    @property
    def shown(self) -> str:
        """The folder as people name it."""
        home = Path.home()
        return f"~/{self.folder.relative_to(home).as_posix()}" if home in self.folder.parents else str(self.folder)

    def inside(self, path: str) -> Path:
        """What a path of a form means, if that lies in the root; else an error that says so."""
        if "\0" in path:
            raise PageError("A path cannot hold this character.")
        try:
            found = (self.folder / path).resolve()
        except (OSError, RuntimeError):
            raise MissingPageError(f"{path!r} cannot be looked at.") from None
        if found != self.folder and self.folder not in found.parents:
            raise PageError(
                f"{path!r} is outside of the folder that this studio was opened for, {self.shown}. "
                "Start it with --root to open another folder."
            )
        return found

    def relative(self, path: Path) -> str:
        """A path in the root as forms carry it."""
        return path.relative_to(self.folder).as_posix()

    def is_inside(self, path: Path) -> bool:
        """Whether a path, links resolved, lies in the root."""
        try:
            return self.folder in path.resolve().parents
        except (OSError, RuntimeError):
            return False

    def listing(self, path: str, endings: tuple[str, ...]) -> list[Listed]:
        """Folders, and files of these endings, in a folder of the root; hidden ones and links that lead out are not."""
        folder = self.inside(path)
        if not folder.is_dir():
            raise MissingPageError(f"There is no folder {path!r}.")
        found = []
        for entry in _entries(folder):
            place = Path(entry.path)
            is_folder = entry.is_dir()
            if entry.name.startswith(".") or not (is_folder or entry.name.lower().endswith(endings)):
                continue
            if not self.is_inside(place):
                continue
            size = 0 if is_folder else entry.stat().st_size
            found.append(Listed(entry.name, self.relative(folder) + "/" + entry.name, is_folder, size))
        found = [Listed(one.name, one.path.removeprefix("./"), one.is_folder, one.size) for one in found]
        return sorted(found, key=lambda one: (not one.is_folder, one.name.lower()))[:_MOST_LISTED]

    def find(self, ending: str) -> list[Path]:
        """Files of an ending in the root and the folders below it, as far down as people look."""
        return sorted(path for path in _walk(self.folder, _DEEPEST) if path.name.endswith(ending))[:_MOST_LISTED]

    def table(self, path: str) -> str:
        """A file, a folder or a pattern as the library takes it, of which all files lie in the root."""
        parts = Path(path).parts
        if ".." in parts:
            raise PageError(f"{path!r} goes up with '..'; name a file, a folder or a pattern below the opened folder.")
        n_fixed = len(parts)  # up to the first part with a sign of a pattern
        if not (self.folder / path).exists():
            n_fixed = next((n for n, part in enumerate(parts) if set(part) & set(_PATTERN)), len(parts))
        full = str(Path(self.inside(os.path.join("", *parts[:n_fixed])), *parts[n_fixed:]))
        for file in list_files(full):
            self.inside(file)
        return full


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as err:
        raise PageError(f"The folder cannot be listed: {err.strerror}.") from None


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = _entries(folder)
    except PageError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_file():
            yield Path(entry.path)
        elif depth and entry.is_dir():
            yield from _walk(Path(entry.path), depth - 1)


# -------------------------------------------------------------------------------------------------------------- records
# Records of the studio: small JSON files that only their owner may read, each written whole or not at all.


_KEY = re.compile(r"[0-9a-f]{32}")
_OWNER_ONLY, _OWNER_FOLDER, _OTHERS = 0o600, 0o700, 0o077


def new_key() -> str:
    """A name for a record that nobody has used."""
    return token_hex(16)


def now() -> str:
    """The time, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def private_folder(path: Path) -> Path:
    """A folder that only its owner may look into; made if it is not there, and refused if others may."""
    path.mkdir(mode=_OWNER_FOLDER, parents=True, exist_ok=True)
    if os.name == "posix":
        found = path.stat()
        if found.st_uid != os.getuid() or found.st_mode & _OTHERS:
            raise FileError(
                f"the folder {str(path)!r} is there, and is another's or open to others; the studio keeps tables and "
                "links in it: make it yours alone (chmod 700), or name another --workspace"
            )
    return path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner may read, whole or not at all, in place of one that was there."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, _OWNER_ONLY))  # what replaces a file keeps its permissions
    write_whole(path, content, overwrite=True)


class Records:
    """The records of one kind, each a file in a folder, by key."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = private_folder(folder)
        self._what = what

    def all(self) -> list[dict[str, Any]]:
        """All records that can be read, the last changed first."""
        keys = [path.stem for path in self._folder.glob("*.json") if _KEY.fullmatch(path.stem)]
        found = []
        for key in keys:
            try:
                found.append(self.get(key))
            except (MissingPageError, FileError):
                continue
        return sorted(found, key=lambda one: str(one.get("changed", "")), reverse=True)

    def get(self, key: str) -> dict[str, Any]:
        """One record."""
        if not _KEY.fullmatch(key):
            raise MissingPageError(f"There is no such {self._what}.")
        try:
            content = (self._folder / f"{key}.json").read_bytes()
        except OSError:
            raise MissingPageError(f"There is no such {self._what}, or it was removed.") from None
        try:
            found = read_json(content) if content else None
        except ValueError as err:
            raise FileError(f"the record of a {self._what} is damaged: {err}") from None
        if not isinstance(found, dict):
            raise MissingPageError(f"There is no such {self._what}.")
        return found

    def put(self, key: str, record: dict[str, Any]) -> dict[str, Any]:
        """Keep a record, with the time of the change."""
        kept = {**record, "key": key, "changed": now()}
        write_private(self._folder / f"{key}.json", write_json(kept))
        return kept

    def remove(self, key: str) -> None:
        """Forget a record."""
        self.get(key)
        (self._folder / f"{key}.json").unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------------------ workspace
# The folder itself: one studio at a time, drafts with revisions, jobs, releases and ledgers.


RELEASE_ENDING = ".spinney"
# Of a name: a file system takes 255 bytes, and endings and names of unfinished files come on top.
_MOST_BYTES = 120
_NAME = re.compile(r"[\w][\w .,()+-]{0,99}")


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A release in the workspace: its name, its file, and where it came from as far as that is known.

    `origin` holds the keys `job`, `draft`, `made`, `table`, `purpose`, `ledger`, `population` and `schema`, the text of
    the schema file; it is empty of a release that somebody put into the folder.
    """

    name: str
    path: Path
    origin: dict[str, Any]


class Workspace:
    """A folder of the studio, below the root that the user has opened or wherever they put it."""

    def __init__(self, root: Root, folder: str | Path | None = None) -> None:
        self.root = root
        self.folder = private_folder(Path(folder).resolve() if folder else root.folder / "spinney-studio")
        self.tables_folder = private_folder(self.folder / "tables")
        self.releases_folder = private_folder(self.folder / "releases")
        self.ledgers_folder = private_folder(self.folder / "ledgers")
        self.jobs_folder, self.looks_folder = self.folder / "jobs", private_folder(self.folder / "looks")
        self._drafts = Records(self.folder / "drafts", "draft")
        self._jobs = Records(self.jobs_folder, "job")
        self._lock = RLock()
        self._held = FileLock(self.folder / ".lock", mode=0o600)

    def shown(self, place: str) -> str:
        """A path as pages show it: short where it lies in the workspace or in the root."""
        path = Path(place)
        if self.folder in path.parents:
            return f"{path.relative_to(self.folder).as_posix()} in the workspace"
        return path.relative_to(self.root.folder).as_posix() if self.root.folder in path.parents else place

    def hold(self) -> None:
        """Keep others out of the workspace until this process ends; an error where another is in it."""
        try:
            self._held.acquire(timeout=0)
        except Timeout:
            raise FileError(
                f"another studio works in {str(self.folder)!r}; use that one, end it, or name another --workspace"
            ) from None

    def give_back(self) -> None:
        """Let others in."""
        self._held.release()

    # ------------------------------------------------------------------------------------------------------- drafts

    def drafts(self) -> list[dict[str, Any]]:
        """All drafts, the last changed first."""
        return self._drafts.all()

    def draft(self, key: str) -> dict[str, Any]:
        """One draft."""
        return self._drafts.get(key)

    def new_draft(self, **content: Any) -> dict[str, Any]:
        """Begin a draft."""
        return self._drafts.put(new_key(), {"revision": 1, "made": now(), **content})

    def change_draft(self, key: str, revision: int, **content: Any) -> dict[str, Any]:
        """Change what a draft says; an OutdatedError where it was changed since this revision."""
        with self._lock:
            draft = self.draft(key)
            _check_revision(draft, revision)
            return self._drafts.put(key, {**draft, **content, "revision": revision + 1})

    def remove_draft(self, key: str) -> None:
        """Forget a draft."""
        with self._lock:
            self._drafts.remove(key)

    def spend_draft(self, key: str, revision: int, job: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The job of a draft, and whether it is new: a draft is spent once, however often its form is sent.

        The job has the key of its draft, so that there cannot be two.
        """
        with self._lock:
            draft = self.draft(key)
            if draft.get("job"):
                return self.job(key), False
            _check_revision(draft, revision)
            record = self._jobs.put(key, {**job, "made": now()})
            self._drafts.put(key, {**draft, "revision": revision + 1, "job": key})
            return record, True

    # --------------------------------------------------------------------------------------------------------- jobs

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, the last changed first."""
        return self._jobs.all()

    def job(self, key: str) -> dict[str, Any]:
        """One job."""
        return self._jobs.get(key)

    def change_job(self, key: str, **content: Any) -> dict[str, Any]:
        """Change what is on record of a job."""
        with self._lock:
            return self._jobs.put(key, {**self.job(key), **content})

    # ---------------------------------------------------------------------------------------------- releases, ledgers

    def releases(self) -> list[ReleaseFile]:
        """All releases, the newest first."""
        found = sorted(self.releases_folder.glob(f"*{RELEASE_ENDING}"), key=_changed, reverse=True)
        return [_release(path) for path in found if path.is_file()]

    def release(self, name: str) -> ReleaseFile:
        """One release, by the name of its file without the ending."""
        path = self.releases_folder / f"{checked_name(name)}{RELEASE_ENDING}"
        if not path.is_file():
            raise MissingPageError(f"There is no release {name!r} in the workspace.")
        return _release(path)

    def free_release_name(self, wanted: str) -> str:
        """A name for a release that none has: the wanted one, or that with a number."""
        base = tidy_name(wanted)
        taken = {path.name for path in self.releases_folder.iterdir()}
        taken |= {f"{job.get('release')}{RELEASE_ENDING}" for job in self.jobs()}
        names = (base if n == 1 else f"{base}-{n}" for n in range(1, 100_000))
        return next(name for name in names if f"{name}{RELEASE_ENDING}" not in taken)

    def ledgers(self) -> list[str]:
        """The ledgers in the root and in the workspace, by their paths."""
        here = list(self.ledgers_folder.glob(f"*{LEDGER_ENDING}"))
        return list(dict.fromkeys(str(path) for path in [*self.root.find(LEDGER_ENDING), *sorted(here)]))


def _check_revision(draft: dict[str, Any], revision: int) -> None:
    """Raise unless a form was made from what the draft says now, and the draft can still be changed."""
    if draft.get("job"):
        raise OutdatedError(
            "This draft was spent in the meantime, so it cannot be changed any more. Start a new one from the same "
            "table instead."
        )
    if draft["revision"] != revision:
        raise OutdatedError(
            "This draft was changed in another tab after this form was loaded, so nothing of the form was kept. Load "
            "the page again to see what the draft says now."
        )


def checked_name(name: str) -> str:
    """A name that is one file in one folder, and nothing else."""
    if len(name.encode(errors="replace")) > _MOST_BYTES:
        raise PageError("This name is too long; choose a shorter one.")
    if not _NAME.fullmatch(name) or name.endswith((".", " ")):
        raise PageError("A name has letters, digits, spaces and the signs . , ( ) + - in it, and no others.")
    return name


def tidy_name(wanted: str) -> str:
    """The nearest thing to a name that is allowed."""
    text = re.sub(r"[^\w .,()+-]+", "-", wanted).strip(" .-")
    text = text.encode(errors="ignore")[:80].decode(errors="ignore").strip(" .-")
    return text if _NAME.fullmatch(text) else "release"


def _changed(path: Path) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _release(path: Path) -> ReleaseFile:
    try:
        origin = read_json(path.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        origin = {}
    return ReleaseFile(path.stem, path, origin if isinstance(origin, dict) else {})


# --------------------------------------------------------------------------------------------------------- draft schema
# What a draft states about its table: the schema of its text, with all that is wrong with it.


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


# --------------------------------------------------------------------------------------------------------------- tables
# Tables that a draft is about: where they are, and what the library is given to read.
#
# A draft names a table by plain data: files in the root or in the workspace (a path, a folder or a pattern, with what
# was said about a CSV), or a table in a DuckDB file. Whatever opens it checks again that it lies where it may.


# How a CSV may be written, as forms name it.
CSV_FIELDS = ("delimiter", "decimal", "encoding", "date_format")
# A view of a DuckDB file, or a name that is a path, might read other files or the network.
_NOTHING_ELSE = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
# Of a large CSV, no more than this is looked at to guess types: some tens of megabytes.
MOST_BLOCKS = 4


def described_table(
    workspace: Workspace, at: str, path: str, *, table: str = "", csv: Mapping[str, str]
) -> dict[str, Any]:
    """A table as drafts name it; an error where there is none, or where it may not be opened."""
    place = workspace.root.folder if at == "root" else workspace.tables_folder
    said = {name: value for name, value in csv.items() if name in CSV_FIELDS and value}
    described = {"at": at, "path": path, "table": table, "csv": said, "name": _name(path, table)}
    if not path and not table:
        raise PageError("Choose a file, a folder or a pattern of files.")
    if is_duckdb(path):
        if not table:
            raise PageError("A DuckDB file holds several tables; say which by its name.")
        if said:
            raise PageError("Delimiter, decimal mark, encoding and date format are for CSV files; leave them empty.")
        return described
    files = list_files(Root(place).table(path))
    if said and is_parquet(files[0]):
        raise PageError("Delimiter, decimal mark, encoding and date format are for CSV files; leave them empty.")
    return described


def is_duckdb(path: str) -> bool:
    """Whether a file name says DuckDB."""
    return path.lower().endswith(DUCKDB_ENDINGS)


def opened(workspace: Workspace, table: Mapping[str, Any]) -> Any:
    """What the library is given to read."""
    root = Root(workspace.root.folder if table["at"] == "root" else workspace.tables_folder)
    if is_duckdb(table["path"]):
        return _duckdb_table(root.inside(table["path"]), table["table"])
    path = root.table(table["path"])
    csv = dict(table["csv"])
    if not csv:
        return path
    if csv.get("delimiter") in ("tab", "\\t"):
        csv["delimiter"] = "\t"
    return CSV(path, **csv)


def types(workspace: Workspace, table: Mapping[str, Any]) -> pa.Schema:
    """Names and types of the columns; of a CSV guessed from the values at its beginning."""
    frame = opened(workspace, table)
    if isinstance(frame, (str, CSV)):
        return file_types(frame, most_blocks=MOST_BLOCKS)
    with redacted(lambda err: InputError(f"the types of the table cannot be told ({type(err).__name__})")):
        found: pa.Schema = frame.limit(0).arrow().schema
    return found


def guessed_from_values(table: Mapping[str, Any]) -> bool:
    """Whether the types of a table are guesses, because its files say none."""
    return not is_duckdb(table["path"]) and not is_parquet(table["path"])


def folder_of(workspace: Workspace, table: Mapping[str, Any]) -> Path:
    """The folder in which a schema looks for files that it names."""
    root = workspace.root.folder if table["at"] == "root" else workspace.tables_folder
    place = root / table["path"]
    return place if place.is_dir() else place.parent if place.parent.is_dir() else root


def _duckdb_table(path: Path, name: str) -> Any:
    duckdb = load_optional("duckdb", "a DuckDB file")
    if not path.is_file():
        raise PageError(f"There is no file {path.name!r}.")
    with redacted(
        lambda err: PageError(f"{path.name!r} has no table {name!r} that can be read ({type(err).__name__}).")
    ):
        connection = duckdb.connect(str(path), read_only=True, config=_NOTHING_ELSE)
        return connection.table(name)


def _name(path: str, table: str) -> str:
    base = table or Path(path).name or path
    return base.split(".")[0].replace("*", "").strip("-_ ") or "table"
