"""The release file: a zip archive of `card.json` and what the kind of release adds (`bins.arrow`), and no pickle.

Zip checks every byte by CRC, and all members open with everyday tools. Time stamps are fixed, so equal
releases are equal files.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from spinney.errors import FileError, ParameterError
from spinney.files import write_whole
from spinney.progress import waiting
from spinney.release.binned import BinnedRelease
from spinney.release.card import Card
from spinney.release.forest import ForestRelease
from spinney.release.frames import check_frame_kind
from spinney.release.generator import GeneratorRelease
from spinney.release.model import Release
from spinney.release.moments import MomentsRelease
from spinney.release.points import PointsRelease

FORMAT = "spinney-release"
FORMAT_VERSION = 1

_KINDS: dict[str, type[Release]] = {
    kind.kind: kind for kind in (BinnedRelease, MomentsRelease, ForestRelease, PointsRelease, GeneratorRelease)
}
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release to one file, whole or not at all."""
    entries, members = release.to_members()
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": release.kind,
        "card": release.card.to_dict(),
        **entries,
    }

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            text = json.dumps(described, indent=2, ensure_ascii=False)
            archive.writestr(zipfile.ZipInfo("card.json", _EPOCH), text.encode())
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)

    write_whole(path, write, overwrite=overwrite)


@waiting("loading the release")
def load(path: str | Path) -> Release:
    """Read a release file. The schema and the card are in it."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        described = json.loads(members.pop("card.json"))
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, RuntimeError) as err:
        raise FileError(f"{str(path)!r} is not a Spinney release, or is damaged: fetch or save it again") from err
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    _check_format(path, described)
    try:
        card = Card.from_dict(described["card"])
        check_frame_kind(card.frame)
        return _KINDS[described.get("kind", BinnedRelease.kind)].from_members(card, described, members)
    except (KeyError, TypeError, ValueError, ArithmeticError, ParameterError, pa.ArrowException) as err:
        raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents") from err


def _check_format(path: Path, described: Any) -> None:
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney release")
    version = described.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} has format version {version!r}, and this Spinney reads up to {FORMAT_VERSION}; upgrade it"
        )
