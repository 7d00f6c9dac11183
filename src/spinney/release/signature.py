"""Signatures of release files: who vouches for a file, by an Ed25519 key, beside the file or inside it.

A signature is a short text. Everything before its empty line, the line's end included, is what was signed; the lines
after it are the signature in base64, so that others can check it with openssl:

    spinney release signature 1
    digest sha256 9f2b...
    release-format 3
    signed-at 2026-11-17T09:30:00Z
    key sha256 41d0...

    MEUC...

The first line keeps it apart from whatever else the key may sign. The digest is of all that the file holds besides a
signature inside it (`storage.file_digest`). The time is the signer's word. The key is named by the digest of its public
half, and is never taken from the signature: whoever checks has it from the signer.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.errors import FileError, ParameterError
from spinney.files import write_whole
from spinney.release.storage import FORMAT_VERSION, embedded_signature, file_digest, file_format, with_signature
from spinney.shown import brief

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ENDING = ".sig"
_HEADER = "spinney release signature 1"
_TEXT = re.compile(
    rf"{_HEADER}\n"
    r"digest sha256 (?P<digest>[0-9a-f]{64})\n"
    r"release-format (?P<release_format>[1-9][0-9]{0,5})\n"
    r"signed-at (?P<signed_at>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)\n"
    r"key sha256 (?P<key>[0-9a-f]{64})\n"
    r"\n"
    r"(?P<signature>[A-Za-z0-9+/]{86}==)\n"
)
_LARGEST = 4096
_TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signature says, and the 64 bytes that bear it out."""

    digest: str
    release_format: int
    signed_at: str
    key: str
    signature: bytes

    @property
    def message(self) -> bytes:
        """What was signed."""
        return message_of(self.digest, self.release_format, self.signed_at, self.key)

    def __str__(self) -> str:
        return self.message.decode("ascii") + "\n" + base64.b64encode(self.signature).decode("ascii") + "\n"

    @classmethod
    def parse(cls, text: str, where: str) -> Signature:
        """Read a signature; a FileError names where it stands. What is signed has one spelling only."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise FileError(f"{where} is not a Spinney signature, or is cut off or changed")
        try:
            signature = base64.b64decode(found["signature"], validate=True)
            datetime.strptime(found["signed_at"], _TIME).replace(tzinfo=UTC)
        except (binascii.Error, ValueError):
            raise FileError(f"{where} is not a Spinney signature, or is cut off or changed") from None
        return cls(found["digest"], int(found["release_format"]), found["signed_at"], found["key"], signature)


def message_of(digest: str, release_format: int, signed_at: str, key: str) -> bytes:
    """The bytes that are signed."""
    lines = [_HEADER, f"digest sha256 {digest}", f"release-format {release_format}", f"signed-at {signed_at}"]
    return "".join(f"{line}\n" for line in [*lines, f"key sha256 {key}"]).encode("ascii")


def stated_time(text: str | None) -> str:
    """A time as signatures have it: now, or what the signer states, in UTC and to the second."""
    if text is None:
        return datetime.now(UTC).strftime(_TIME)
    try:
        stated = datetime.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"time {brief(text)} is not one such as 2026-11-17T09:30:00Z") from None
    if stated.tzinfo is None:
        raise ParameterError(f"time {brief(text)} says no time zone; write it as 2026-11-17T09:30:00Z")
    return stated.astimezone(UTC).strftime(_TIME)


def fingerprint(key: Ed25519PublicKey) -> str:
    """The digest that a public key is named by: SHA-256 of its DER form, as openssl gives it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def sign(path: str | Path, key: Ed25519PrivateKey, *, signed_at: str) -> Signature:
    """Sign the release in a file, which the caller has verified."""
    said = file_digest(path), file_format(path), signed_at, fingerprint(key.public_key())
    return Signature(*said, key.sign(message_of(*said)))


def write_signature(path: str | Path, signature: Signature, *, overwrite: bool) -> None:
    """Write a signature to a file of its own, whole or not at all."""
    write_whole(path, lambda file: file.write(str(signature).encode("ascii")), overwrite=overwrite)


def embed_signature(path: str | Path, out: str | Path, signature: Signature, *, overwrite: bool) -> None:
    """Write a copy of a release file with a signature inside; one that is there already is replaced."""
    with_signature(path, out, str(signature).encode("ascii"), overwrite=overwrite)


def read_signature(path: str | Path) -> Signature:
    """The signature in a file of its own."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    return Signature.parse(_text(content), repr(str(path)))


def signature_inside(path: str | Path) -> Signature | None:
    """The signature inside a release file; None where it has none."""
    content = embedded_signature(path)
    return None if content is None else Signature.parse(_text(content), f"the signature inside {str(path)!r}")


def check_signature(signature: Signature, path: str | Path, key: Ed25519PublicKey, where: str) -> None:
    """Raise a FileError unless this key signed this very file."""
    from cryptography.exceptions import InvalidSignature

    if signature.key != fingerprint(key):
        raise FileError(
            f"{where} was made with the key {signature.key[:16]}..., and the public key given is "
            f"{fingerprint(key)[:16]}...; take the public key of whoever signed"
        )
    try:
        key.verify(signature.signature, signature.message)
    except InvalidSignature:
        raise FileError(f"{where} does not hold: it was changed, or the key did not make it") from None
    if signature.digest != file_digest(path):
        raise FileError(
            f"{where} is of another release than {str(path)!r}, or the file was changed after it was signed"
        )
    if signature.release_format != file_format(path):
        raise FileError(f"{where} is of a file of another format version than {str(path)!r}")
    if signature.release_format > FORMAT_VERSION:
        raise FileError(f"{where} is of a newer format version than this version of Spinney reads; upgrade it")


def _text(content: bytes) -> str:
    """ASCII, or what is no signature."""
    return content.decode("ascii", errors="replace") if len(content) <= _LARGEST else ""
