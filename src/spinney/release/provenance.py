"""Where a release file comes from: its charges in a ledger, its schema, and who signed it. PUBLIC.

A file can be checked against what exists apart from it: the ledger that paid, the schema that was stated
beforehand, the public key of whoever vouches for it. No error quotes a private key.

    verification           what a verification found
    charges in a ledger    the charges of a release among those of a ledger
    keys                   Ed25519 keys in PEM files
    schema comparison      a schema stated beforehand against that of a release
    signatures             signatures beside a file or inside it
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.documents import Document, Facts, Listing, Printed
from spinney.errors import FileError, ParameterError
from spinney.machine import load_optional
from spinney.privacy.accounts.rules import events_on_record
from spinney.privacy.accounts.shared import SharedLedger, default_population, store_at
from spinney.privacy.accounts.verifying import find_release
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Event
from spinney.release.card import Card
from spinney.release.file import FORMAT_VERSION, digest, embedded_signature, file_digest, file_format
from spinney.release.release import Release
from spinney.schema.linked import PeopleShape, Tables
from spinney.schema.plain import jsonable
from spinney.schema.rules import Rule, with_differences
from spinney.schema.schema import Schema
from spinney.text import brief, printable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


# -------------------------------------------------------------------------------------------------------- verification
# What a verification found (`synthesizers/verify.py` makes it): `print` shows it as `spinney verify` does.


@dataclass(frozen=True, slots=True)
class VerificationReport(Printed):
    """What a verification found: the guarantee, every check in words, and what was not checked and why."""

    name: str  # the file, or "the release"
    facts: Mapping[str, Any]  # of the card: epsilon, delta, unit, digests, version
    guarantee: str
    evidence: Mapping[str, Any]  # what was compared with the schema, the ledger and signatures
    checks: tuple[str, ...]
    not_checked: tuple[Mapping[str, str], ...]  # `what` and `why`

    @property
    def digest(self) -> str:
        """SHA-256 of what the file of the release holds, a signature inside it left out."""
        return str(self.facts["digest"])

    def document(self) -> Document:
        """The guarantee, every check, and what was not checked."""
        commit = "" if self.facts["commit"] is None else f", commit {self.facts['commit']}"
        facts = [
            ("guarantee", self.guarantee),
            ("digest", f"sha256 {self.digest}"),
            ("schema", f"sha256 {self.facts['schema_digest']}"),
            ("made by", f"spinney {self.facts['spinney_version']}{commit}"),
        ]
        others = [f"{other['what']}: {other['why']}" for other in self.not_checked]
        return Document(
            f"{self.name}: the card and the released numbers agree. No file can prove that the noise was really drawn.",
            [Facts(facts), Listing("checked", self.checks, indent=6), Listing("not checked", others, indent=6)],
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON, as `spinney verify --json` prints it."""
        told = {"guarantee": self.guarantee, **self.evidence}
        return {**self.facts, **told, "checks": list(self.checks), "not_checked": list(map(dict, self.not_checked))}


# -------------------------------------------------------------------------------------------------- charges in a ledger
# Whether a ledger holds the charges of a release: its events, one after the other, as a fit records them.
#
# A ledger in a database names the release that came of a charge by its digest. Elsewhere, and where the fit ended
# before its release was recorded, it says what was charged and not for which file, so that two releases of equal
# charges cannot be told apart: the run that is found may be that of another release.


@dataclass(frozen=True, slots=True)
class FoundCharge:
    """Where the charges of a release stand in a ledger: the numbers of their entries, and how often."""

    entries: tuple[int, ...]  # as `spinney ledger show` numbers them; in memory, events counted from 1
    n_events: int
    n_runs: int  # how many runs of the same charges there are; one of them is that of the release
    by_digest: bool = False  # whether the ledger names the release itself
    said: str = ""  # then: who charged what, and when
    population: str | None = None  # that paid, in a database


def find_charge(ledger: Ledger, release: Release) -> FoundCharge | None:
    """The charges of a release in a ledger, in any of its populations; None where none of its unit holds them.

    Raises:
        FileError: the ledger names the release, and was charged for it something else than its card lists.
    """
    wanted = release.card.events
    if not wanted:
        return None
    if isinstance(ledger, SharedLedger):
        named = find_release(ledger, digest(release), wanted)
        if named is not None:
            if not named.agrees:
                raise FileError(f"the ledger names this release, and other charges than its card lists: {named}")
            numbers = tuple(charge.number for charge in named.charges)
            paid_by = named.charges[0].population
            return FoundCharge(numbers, len(wanted), 1, by_digest=True, said=str(named), population=paid_by)
    found: FoundCharge | None = None
    for population, held in _held(ledger, release.card.unit):
        runs = _runs([event for _number, event in held], wanted)
        if not runs:
            continue
        n_runs = _n_apart([run[0] for run in runs], len(wanted))
        if found is not None:
            found = replace(found, n_runs=found.n_runs + n_runs)
            continue
        numbers = tuple(dict.fromkeys(held[place][0] for place in runs[0]))
        found = FoundCharge(numbers, len(wanted), n_runs, population=population)
    return found


def open_for(place: str | Path, release: Release) -> SharedLedger:
    """A ledger, with the population that paid for a release, where it holds several.

    Raises:
        FileError: it holds several, and none of them holds the charges of the release.
    """
    ledger = SharedLedger(store_at(place))
    if len(ledger.populations) > 1:
        found = find_charge(ledger, release)
        if found is not None:
            return Ledger.open(place, population=found.population)
        if default_population() is None:
            raise FileError(
                f"the ledger {ledger.address!r} has {len(ledger.populations)} populations, and none of them holds the "
                "charges of this release; name one with SPINNEY_POPULATION"
            )
    return Ledger.open(place)


def _held(ledger: Ledger, unit: str) -> list[tuple[str | None, list[tuple[int, Event]]]]:
    """The events of every population that is of a unit, each with the number of its entry.

    Those that the ledger has for another release, or for a fit that failed, are none that this one may claim.
    """
    if not isinstance(ledger, SharedLedger):
        return [(None, list(enumerate(ledger.events, start=1)))] if ledger.unit.value == unit else []
    state = ledger._read()
    ended = {entry.number for fit in state.fits.values() if fit.is_ended for entry in fit.charges}
    return [
        (
            population.name,
            [
                (number, event)
                for number, event in events_on_record(state, population=population.name)
                if number not in ended
            ],
        )
        for population in state.populations.values()
        if population.room.unit.value == unit
    ]


def _runs(held: Sequence[Event], wanted: Sequence[Event]) -> list[list[int]]:
    """Where the wanted events stand, all of them in order; others may have charged in between."""
    n = len(wanted)
    runs = [place for place in range(len(held) - n + 1) if tuple(held[place : place + n]) == tuple(wanted)]
    if runs:
        return [list(range(place, place + n)) for place in runs]
    places: list[int] = []
    for place, event in enumerate(held):
        if len(places) < n and event == wanted[len(places)]:
            places.append(place)
    return [places] if len(places) == n else []


def _n_apart(places: Sequence[int], length: int) -> int:
    """How many of the runs share no event."""
    n, end = 0, -1
    for place in places:
        if place >= end:
            n, end = n + 1, place + length
    return n


# ----------------------------------------------------------------------------------------------------------------- keys
# Ed25519 keys in PEM files, as openssl writes and reads them; `cryptography` does the work, and is loaded on use.
#
# A private key is PKCS#8, encrypted where a password is given, in a file that its owner alone can read. No key file
# is ever written over. What is wrong with a key is said without a word of its contents.


PASSWORD_VARIABLE = "SPINNEY_KEY_PASSWORD"  # noqa: S105  # the name of a variable
_LARGEST_KEY = 1 << 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_key_pair(private: str | Path, public: str | Path, *, password: bytes | None) -> Ed25519PublicKey:
    """A new key in two new files; the private one is readable by its owner alone.

    Raises:
        FileError: one of the files exists, or cannot be written.
    """
    ed25519, forms = _library()
    paths = Path(private), Path(public)
    if paths[0].resolve() == paths[1].resolve():
        raise ParameterError("the private and the public key are the same file; name two")
    for path in paths:
        if os.path.lexists(path):
            raise FileError(f"{str(path)!r} exists, and keys are never overwritten; name another file")
    key: Ed25519PrivateKey = ed25519.Ed25519PrivateKey.generate()
    locked = forms.NoEncryption() if password is None else forms.BestAvailableEncryption(_checked(password))
    contents = (
        key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, locked),
        key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo),
    )
    _write_new(paths[0], contents[0], mode=0o600)
    try:
        _write_new(paths[1], contents[1], mode=0o644)
    except FileError:
        paths[0].unlink()  # a private key of which nobody has the other half
        raise
    return key.public_key()


def load_private_key(path: str | Path, password: Callable[[], bytes | None]) -> Ed25519PrivateKey:
    """The private key in a PEM file; `password` is asked for one where the key is encrypted.

    Raises:
        FileError: the file is missing, no Ed25519 private key, or the password is wrong.
    """
    ed25519, forms = _library()
    content = _read(path)
    try:
        key: Any = forms.load_pem_private_key(content, password=None)
    except TypeError:  # which is how the library says that it needs a password
        given = password()
        if not given:
            raise FileError(
                f"{str(path)!r} is encrypted, and no password was given; set {PASSWORD_VARIABLE}, or run this in a "
                "terminal, which asks for it"
            ) from None
        try:
            key = forms.load_pem_private_key(content, password=given)
        except (ValueError, TypeError):
            raise FileError(f"{str(path)!r} cannot be opened: the password is wrong, or the file is damaged") from None
        except Exception:
            raise _no_key(path, "private") from None
    except Exception:  # the library has errors of many kinds for what is no key
        raise _no_key(path, "private") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise FileError(f"{str(path)!r} holds a key of another kind; make an Ed25519 key with `spinney keygen`")
    found: Ed25519PrivateKey = key
    return found


def load_public_key(path: str | Path) -> Ed25519PublicKey:
    """The public key in a PEM file.

    Raises:
        FileError: the file is missing, or holds no Ed25519 public key.
    """
    ed25519, forms = _library()
    content = _read(path)
    if b"PRIVATE KEY" in content:
        raise FileError(f"{str(path)!r} is a private key, which only its owner should have; give the public one")
    try:
        key: Any = forms.load_pem_public_key(content)
    except Exception:
        raise _no_key(path, "public") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise FileError(f"{str(path)!r} holds a key of another kind than Ed25519, and Spinney signs with no other")
    found: Ed25519PublicKey = key
    return found


def is_loose(path: str | Path) -> bool:
    """Whether others than its owner may read a private key, where the system can say."""
    return os.name == "posix" and bool(stat.S_IMODE(Path(path).stat().st_mode) & _OTHERS)


def _library() -> tuple[Any, Any]:
    what = "signing and checking signatures"
    ed25519 = load_optional("cryptography.hazmat.primitives.asymmetric.ed25519", what)
    return ed25519, load_optional("cryptography.hazmat.primitives.serialization", what)


def _read(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_KEY + 1)
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    if len(content) > _LARGEST_KEY:
        raise FileError(f"{str(path)!r} is larger than any key; name a PEM file with one")
    return content


def _write_new(path: Path, content: bytes, *, mode: int) -> None:
    """A file that was not there before, with its permissions from the first byte on."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise FileError(f"{str(path)!r} exists, and keys are never overwritten; name another file") from None
    except OSError as err:
        raise FileError(f"cannot write {str(path)!r}: {err.strerror or err}") from err
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as err:
        path.unlink(missing_ok=True)
        raise FileError(f"cannot write {str(path)!r}: {err.strerror or err}") from err


def _checked(password: bytes) -> bytes:
    if not password:
        raise ParameterError("the password is empty; give one, or leave the option out for a key without one")
    return password


def _no_key(path: str | Path, which: str) -> FileError:
    """An error that says nothing of what the file holds."""
    return FileError(f"{str(path)!r} holds no {which} key that can be read; name the PEM file of an Ed25519 key")


# ---------------------------------------------------------------------------------------------------- schema comparison
# A schema that was stated beforehand, compared with the schema of a release: the same, but for what a fit fills in.
#
# A fit leaves ignored columns out, and fills in bounds and lists of values that the schema asks to find privately;
# the card has a charge for each of those. Differences of dates and times in order follow from these bounds. Bounds
# that were read off the data are marked in both. Everything else is the same in both, or the release was made under
# another schema.


_BOUNDS = ("low", "high")


def compare_schema(stated: Schema | Tables, card: Card) -> tuple[list[str], list[str]]:
    """What differs between the stated schema and that of a release, in words; and what a fit may fill in and did."""
    is_of_persons = isinstance(stated, Tables) or stated.person is not None
    if is_of_persons != (card.people is not None):
        what = "persons with all their rows" if is_of_persons else "single rows"
        return [f"the schema protects {what}, and the release does not"], []
    if card.people is not None:
        return _compare(PeopleShape.of(stated)._without_ignored().to_dict(), card.people.to_dict(), {})
    assert isinstance(stated, Schema)
    kept = stated._without_ignored()
    released, modelled = _without_differences(card.schema._without_found(), kept.rules)
    differences, filled = _compare(kept.to_dict(), released, card._found_privately)
    found = [rule.in_words() for rule in card.schema._related.values() if rule.found]
    filled += [*modelled, *(f"{words} in some rows, which the release found privately" for words in found)]
    return differences, [*(f"column {name!r} is ignored, and left out" for name in stated if name not in kept), *filled]


def _without_differences(released: Schema, stated: Sequence[Rule]) -> tuple[dict[str, Any], list[str]]:
    """The schema of a release without the differences that follow from stated rules and its bounds; these in words."""
    described = released.to_dict()
    if any(name not in released for rule in stated for name in rule.columns):
        return described, []
    in_places = [name for place in released.places for name in place.columns]
    completed = zip(with_differences(stated, released, in_places), stated, strict=True)
    as_stated = {rule: before for rule, before in completed if rule != before}
    filled = [
        f"{as_stated[rule]!r}: the difference is modelled, in the range that the bounds of both columns allow"
        for rule in released.rules
        if rule in as_stated
    ]
    if filled:
        described["rules"] = [as_stated.get(rule, rule).to_dict() for rule in released.rules]
    return described, filled


def _compare(
    stated: Mapping[str, Any], released: Mapping[str, Any], found: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Differences, and what was filled in, entry by entry."""
    stated, released = jsonable(stated), jsonable(released)
    differences: list[str] = []
    filled: list[str] = []
    ours, theirs = (described.get("columns") for described in (stated, released))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in dict.fromkeys([*ours, *theirs]):
            _compare_column(name, ours.get(name), theirs.get(name), found.get(name), differences, filled)
        if not differences and list(ours) != list(theirs):
            differences.append("the columns are in another order")
    for entry in dict.fromkeys([*stated, *released]):
        if entry == "columns" and isinstance(ours, dict) and isinstance(theirs, dict):
            continue
        differences += _unequal(entry, stated.get(entry), released.get(entry))
    return differences, filled


def _compare_column(
    name: str, ours: Any, theirs: Any, found: str | None, differences: list[str], filled: list[str]
) -> None:
    if ours is None or theirs is None:
        where = "the release, and not in the schema" if ours is None else "the schema, and not in the release"
        differences.append(f"column {name!r} is in {where}")
        return
    ours, theirs = dict(ours), dict(theirs)
    asked = "bounds" if ours.get("bounds") == "private" else "values" if ours.get("values") == "private" else None
    if asked != found:
        states = f"asks for private {asked}" if asked else f"states its {found}"
        says = f"the release found its {found} privately" if found else "the release paid for none"
        differences.append(f"column {name!r}: the schema {states}, and {says}")
    if asked == "bounds":
        filled.append(f"column {name!r}: bounds found privately, {theirs.get('low')} to {theirs.get('high')}")
    if asked == "values":
        filled.append(f"column {name!r}: {len(theirs.get('values') or ())} values found privately")
    if ours.get("bounds") == theirs.get("bounds") == "from-data-not-private":
        filled.append(f"column {name!r}: bounds read off the data, which voids the guarantee")
    dropped = {"bounds": (*_BOUNDS, "bounds"), "values": ("values",), None: ()}[asked]
    if "bounds" in ours and asked is None:
        dropped = _BOUNDS
    for entry in dict.fromkeys([*ours, *theirs]):
        if entry not in dropped:
            differences += _unequal(f"column {name!r}: {entry}", ours.get(entry), theirs.get(entry))


def _unequal(what: str, ours: Any, theirs: Any) -> list[str]:
    if ours == theirs and type(ours) is type(theirs):
        return []
    shown = [("nothing" if value is None else brief(value)) for value in (ours, theirs)]
    return [printable(f"{what} is {shown[0]} in the schema and {shown[1]} in the release")]


# ----------------------------------------------------------------------------------------------------------- signatures
# Signatures of release files: who vouches for a file, by an Ed25519 key, beside the file or inside it.
#
# A signature is a short text. Everything before its empty line, the line's end included, is what was signed;
# the lines after it are the signature in base64, so that others can check it with openssl:
#
#     spinney release signature 1
#     digest sha256 9f2b...
#     release-format 3
#     signed-at 2026-11-17T09:30:00Z
#     key sha256 41d0...
#
#     MEUC...
#
# The first line distinguishes it from whatever else the key may sign. The digest is of all that the file holds
# besides a signature inside it (`file_digest`). The signer states the time. The key is named by the digest of
# its public half, and is never taken from the signature: whoever checks has it from the signer.


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
_LARGEST_SIGNATURE = 4096
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


def read_signature(path: str | Path) -> Signature:
    """The signature in a file of its own."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_SIGNATURE + 1)
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
    return content.decode("ascii", errors="replace") if len(content) <= _LARGEST_SIGNATURE else ""
