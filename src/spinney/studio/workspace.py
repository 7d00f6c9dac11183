"""The workspace: a folder in which the studio keeps everything, so that a server that is killed loses nothing.

    tables/     what was uploaded, and the made-up town
    drafts/     what was said so far about a table and its release, a record each
    looks/      what looks at a draft have found: whether its table fits, and what its budget buys
    jobs/       what was spent: what each job is to do, and how far it came
    releases/   release files, each with a record of where it came from beside it
    ledgers/    ledgers that were made here

Only the owner may read it. One studio works in it at a time. Drafts have a revision: who changes one says which
revision they have seen, so that what was changed in another tab is not written over.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from filelock import FileLock, Timeout

from spinney.errors import FileError
from spinney.files import read_json
from spinney.studio.errors import MissingPageError, OutdatedError, PageError
from spinney.studio.places import LEDGER_ENDING, Root
from spinney.studio.records import Records, new_key, now, private_folder

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
