"""The release file: a zip archive of `card.json` and what the kind of release adds (`bins.arrow`), and no pickle.

Zip checks every byte by CRC, and all members open with everyday tools. Time stamps are fixed, so equal
releases are equal files.

A file that comes from elsewhere is read as one that somebody may have made on purpose: only the members of its kind are
read, and no more of them than they are allowed to hold; every number is checked; and what the card promises is worked
out again from its events before anybody sees it (`verification`).
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from spinney.errors import FileError, SpinneyError
from spinney.files import read_json, write_json, write_whole
from spinney.progress import waiting
from spinney.release.arrow import allowed_size, is_arrow
from spinney.release.card import Card
from spinney.release.kinds import KINDS, OLDEST, release_class
from spinney.release.model import Members, Release
from spinney.release.seeds import STREAMS, Stream
from spinney.release.verification import verification
from spinney.shown import brief

FORMAT = "spinney-release"
FORMAT_VERSION = 3

_CARD = "card.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LARGEST_CARD = 2**26
# What vouches for all other members (`signature`). Readers pass over it, and it is no part of a digest.
_SIGNATURE = "signature.txt"
_LARGEST_SIGNATURE = 2**12
_MOST_MEMBERS = 16
_PIECE = 2**20
# The record at the end of a zip archive, and the mark of its variant for more than four gigabytes.
_END = struct.Struct("<4s4H2LH")
_END_MARK, _LARGE_MARK, _LARGE_SIZE = b"PK\5\6", b"PK\6\7", 20
_LIMITS = {_CARD: _LARGEST_CARD, _SIGNATURE: _LARGEST_SIGNATURE}
_PACKED = 1 << 0  # the flag of an encrypted member


def save(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release to one file, whole or not at all."""
    members = _members(release)
    write_whole(path, lambda file: _write(file, members), overwrite=overwrite)


def _write(file: IO[bytes], members: Members) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def digest(release: Release) -> str:
    """What tells a release from others: SHA-256 of all that its file holds, were it written now."""
    return _digest(_members(release))


def file_digest(path: str | Path) -> str:
    """SHA-256 of all members of a release file, as they are and in their order, a signature among them left out.

    Of a file that this version wrote it is the `digest` of its release; of an older one it stays what it was.
    """
    return _digest(_all_members(Path(path)))


def file_format(path: str | Path) -> int:
    """The format version that a release file states."""
    version: int = _read(Path(path), with_members=False)[1]["format_version"]
    return version


def embedded_signature(path: str | Path) -> bytes | None:
    """The signature inside a release file; None where it has none."""
    return _all_members(Path(path), with_signature=True).get(_SIGNATURE)


def with_signature(path: str | Path, out: str | Path, signature: bytes, *, overwrite: bool) -> None:
    """Write a copy of a release file with a signature inside, all other members byte by byte as they are."""
    members = _all_members(Path(path)) | {_SIGNATURE: signature}
    write_whole(out, lambda file: _write(file, members), overwrite=overwrite)


def members_unread(path: str | Path, release: Release) -> list[str]:
    """Members of a file that nothing of its release is read from."""
    known = {_CARD, *release.member_names}
    return [name for name in _all_members(Path(path)) if name not in known]


def entries_unwritten(path: str | Path, release: Release) -> list[str]:
    """What a file holds otherwise than this version would write of its release: members, and entries of the card."""
    held, written = _all_members(Path(path)), _members(release)
    found = [name for name in dict.fromkeys([*held, *written]) if name != _CARD and held.get(name) != written.get(name)]
    ours, theirs = read_json(written[_CARD]), read_json(held[_CARD])
    for within, one, other in (("", ours, theirs), ("card.", ours["card"], theirs["card"])):
        names = [name for name in dict.fromkeys([*one, *other]) if within or name != "card"]
        found += [f"{_CARD}: {within}{name}" for name in names if one.get(name) != other.get(name)]
    return found


def bytes_beside(path: str | Path) -> int | None:
    """By how many bytes a file is longer than its members need; None where it was packed in another way than ours."""
    plain = io.BytesIO()
    _write(plain, _all_members(Path(path), with_signature=True))
    content = Path(path).read_bytes()
    if content == plain.getvalue():
        return 0
    more = len(content) - len(plain.getvalue())
    return more if more > 0 else None


def _digest(members: Members) -> str:
    found = sha256()
    for name, data in members.items():
        found.update(f"{name} {len(data)} ".encode())
        found.update(data)
    return found.hexdigest()


def _all_members(path: Path, *, with_signature: bool = False) -> Members:
    """Everything that a release file holds, whatever its kind; a signature where it is asked for."""
    with _reading(path), path.open("rb") as file:
        _check_end(file)
        with zipfile.ZipFile(file) as archive:
            listed = _listed(archive)
            wanted = [name for name in listed if with_signature or name != _SIGNATURE]
            return {name: _content(archive, listed[name], _LIMITS.get(name)) for name in wanted}


def _members(release: Release) -> Members:
    """All that a file holds, the card first."""
    entries, members = release.to_members()
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": release.kind,
        "stream": release.stream,
        "card": release.card.to_dict(),
        **entries,
    }
    return {_CARD: write_json(described), **members}


@waiting("loading the release")
def load(path: str | Path) -> Release:
    """Read a release file. The schema and the card are in it, and what the card promises is worked out again.

    Args:
        path: a file that `save` wrote.

    Raises:
        FileError: the file is missing, damaged, of a newer version, or contradicts itself.
    """
    path = Path(path)
    kind, described, members = _read(path, with_members=True)
    return _release(path, kind, described, members)


def kind_of(path: str | Path) -> str:
    """The kind of the release in a file; the rest of the file is not looked at. FileError where it is no release."""
    return _read(Path(path), with_members=False)[0].kind


def _read(path: Path, *, with_members: bool) -> tuple[type[Release], dict[str, Any], Members]:
    """The kind of a release, what its card says, and the members of its kind, if they are wanted."""
    with _reading(path), path.open("rb") as file:
        _check_end(file)
        with zipfile.ZipFile(file) as archive:
            listed = _listed(archive)
            described = read_json(_content(archive, listed[_CARD], _LARGEST_CARD))
            _check_format(path, described)
            kind = described.get("kind", OLDEST)
            if not isinstance(kind, str) or kind not in KINDS:
                raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents: unknown kind")
            wanted = release_class(kind)
            names = wanted.member_names if with_members else ()
            return wanted, described, {name: _content(archive, listed[name]) for name in names if name in listed}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of all that can be wrong with a file that it is no release, or damaged."""
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"{str(path)!r} is not a file, so it cannot be a release")
        yield
    except SpinneyError:
        raise
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except (zipfile.BadZipFile, zlib.error, LookupError, ValueError, EOFError, RuntimeError, struct.error) as err:
        raise FileError(f"{str(path)!r} is not a Spinney release, or is damaged: fetch or save it again") from err
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err


def _release(path: Path, kind: type[Release], described: dict[str, Any], members: Members) -> Release:
    """The release of a file's contents, or a FileError that says what is wrong with them."""
    try:
        release = kind.from_members(Card.from_dict(described["card"]), described, members)
        # Files of the first two versions say nothing of it.
        release.stream = _stream(described["stream"]) if described["format_version"] > 2 else "given"
        verification(release)
        if "groups" in described["card"]:  # which the first files do not have
            release.card.check_groups(described["card"]["groups"])
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        MemoryError,
        pa.ArrowException,
    ) as err:
        raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents: {_why(err, members)}") from err
    return release


def _stream(value: Any) -> Stream:
    for known in STREAMS:
        if value == known:
            return known
    raise ValueError(f"stream is none of {', '.join(STREAMS)}")


def _why(err: Exception, members: Members) -> str:
    """What is wrong with the contents; errors of Python's own, which speak of our code, are told as what they mean."""
    if isinstance(err, KeyError) and err.args:
        return f"there is no {brief(err.args[0])}"
    damaged = next((name for name, content in members.items() if not is_arrow(content)), None)
    if damaged is not None:
        return f"the member {damaged!r} is damaged: {_in_short(err)}; fetch or save the file again"
    is_pythons = type(err) in (TypeError, AttributeError, IndexError) or str(err).startswith("zip()")
    if is_pythons:
        return (
            f"the member {_CARD!r} is damaged: an entry is of another type or length than a release has; fetch or save "
            "the file again"
        )
    return _in_short(err)


def _in_short(err: Exception) -> str:
    """What an error says, in one line of bearable length."""
    text = " ".join(str(err).split())
    return f"{text[:300]}…" if len(text) > 300 else text or type(err).__name__


def _check_format(path: Path, described: Any) -> None:
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney release")
    version = described.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} has format version {brief(version)}, and this version of Spinney reads up to "
            f"{FORMAT_VERSION}; "
            "upgrade it"
        )


# ------------------------------------------------------------------------------------------------------- members


def _check_end(file: IO[bytes]) -> None:
    """Raise a BadZipFile where the archive lists more than a release has, before the list is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - _LARGE_SIZE))
    tail = file.read()
    if len(tail) < _END.size:
        raise zipfile.BadZipFile("too short")
    mark, _, _, _, n_members, listing, _, comment = _END.unpack(tail[-_END.size :])
    is_large = tail.startswith(_LARGE_MARK) and len(tail) == _END.size + _LARGE_SIZE
    if mark != _END_MARK or comment or (is_large and size < 2**31):
        raise zipfile.BadZipFile("not an archive that Spinney writes")
    if n_members > _MOST_MEMBERS or listing > _PIECE:
        raise zipfile.BadZipFile("too many members")


def _listed(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name; a BadZipFile where one stands twice, is encrypted or is packed in an odd way."""
    infos = archive.infolist()
    listed = {info.filename: info for info in infos}
    if len(listed) != len(infos):
        raise zipfile.BadZipFile("a member occurs twice")
    for info in infos:
        if info.flag_bits & _PACKED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile("a member is encrypted, or packed in another way than ours")
    return listed


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int | None = None) -> bytes:
    """The bytes of a member, unless they are more than it says, or more than it may hold."""
    limit = allowed_size(info.compress_size) if most is None else min(most, _PIECE + 100 * info.compress_size)
    if info.file_size > limit:
        raise zipfile.BadZipFile("a member unpacks to far more than it is stored in")
    pieces, left = [], info.file_size + 1
    with archive.open(info) as member:
        while left > 0 and (piece := member.read(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
    content = b"".join(pieces)
    if len(content) != info.file_size:
        raise zipfile.BadZipFile("a member is longer or shorter than it says")
    return content
