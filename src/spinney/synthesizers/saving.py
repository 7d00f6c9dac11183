"""Keeping what was paid for: room for a release is held before anything is charged, and no release is thrown away.

A release that cannot be written after its charge would be lost, and fitting again is charged again. So a few megabytes
are reserved where it is to lie before the table is read, and given back when it is written. Where it cannot be written
even so, it goes to the folder for temporary files, and the error says where it is and what was charged.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from spinney.errors import FileError, SpinneyError, raise_alone
from spinney.synthesizers.charged import charged_text

if TYPE_CHECKING:
    from spinney.privacy.ledger import Ledger
    from spinney.synthesizers.method import AnySynthesizer

# Releases of most tables are smaller.
_ROOM = 1 << 23


def reserved(out: str | Path) -> IO[bytes]:
    """A few megabytes in the folder of a file that is to be written, until this is closed; a FileError without room.

    The file that holds them has no name, so nothing is left of it, however the process ends.
    """
    folder = Path(out).resolve().parent
    held = None
    try:
        held = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # whoever asked for it closes it
        _reserve(held.fileno())
    except OSError as err:
        if held is not None:
            held.close()
        raise FileError(
            f"there is no room for {str(out)!r}: {_ROOM >> 20} MiB cannot be written to {str(folder)!r} "
            f"({err.strerror or err}); free some, or choose another folder; nothing was charged"
        ) from err
    return held


def _reserve(descriptor: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, _ROOM)
        return
    os.write(descriptor, bytes(_ROOM))


def save_charged(synthesizer: AnySynthesizer, out: str | Path, *, force: bool, ledger: Ledger | None) -> None:
    """Save a release that was paid for, here or else where it fits; a FileError says where it is, and what it cost."""
    with kept(synthesizer, out, ledger):
        synthesizer.save(out, overwrite=force)


@contextmanager
def kept(synthesizer: AnySynthesizer, out: str | Path, ledger: Ledger | None) -> Iterator[None]:
    """What is done with a fitted release before it lies in its file: whatever fails, the release is not lost by it."""
    try:
        yield
    except BaseException as err:
        card = synthesizer.card_
        told = f"{charged_text(card.epsilon, card.delta, ledger)}, and {_kept(synthesizer, out)}"
        if not isinstance(err, Exception):  # an interruption stays one
            err.add_note(told)
            raise
        what = str(err) if isinstance(err, SpinneyError) else f"cannot write {str(out)!r}: {type(err).__name__}"
        raise_alone(FileError(f"{what}; {told}"))


def _kept(synthesizer: AnySynthesizer, out: str | Path) -> str:
    """Where a release is that could not be written to its place."""
    try:
        place = Path(tempfile.mkdtemp(prefix="spinney-")) / Path(out).name
        synthesizer.save(place)
    except Exception:
        return "the release is lost; fitting again is charged again"
    return f"the release is kept in {str(place)!r}: move it from there, as fitting again is charged again"
