"""The verification of a release: its guarantee worked out again, what was compared, and what was not.

`Release.verify` and `spinney verify` are this. The file is looked at where the release was read from one, and what
stands outside of it where it is given: the schema that was stated, the ledger that was charged, signatures. No
file can prove that noise was really drawn.

    verification    the checks in their order, and what they found
    evidence        the stated schema, the ledger, the signatures
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from spinney.errors import FileError, ParameterError
from spinney.files import commit_of
from spinney.privacy.accounts.shared import SharedLedger, store_at
from spinney.privacy.accounts.verifying import numbered
from spinney.privacy.ledger import Ledger
from spinney.release.file import check_contents, digest, file_digest
from spinney.release.provenance import (
    ENDING,
    Signature,
    VerificationReport,
    check_signature,
    compare_schema,
    find_charge,
    load_public_key,
    read_signature,
    signature_inside,
)
from spinney.release.release import Release
from spinney.schema.linked import Tables, schema_digest
from spinney.schema.plain import parse_toml, read_schema_text
from spinney.schema.schema import Schema
from spinney.synthesizers.verify import verified_numbers
from spinney.text import as_given

# --------------------------------------------------------------------------------------------------------- verification


_UNASKED = {
    "schema": "that the schema is the one that was stated beforehand",
    "ledger": "that a ledger was charged for this release",
}


def verify(
    release: Release, *, schema: Any = None, ledger: Any = None, key: Any = None, signature: Any = None
) -> VerificationReport:
    """Check a release, its file where it has one, and what is given to compare it with; a FileError where it fails."""
    if signature is not None and key is None:
        raise ParameterError("signature needs key, the public key of whoever signed: --key FILE")
    path = release.file
    name = "the release" if path is None else str(path)
    found_digest = digest(release) if path is None else file_digest(path)
    guarantee, checks, others = verified_numbers(name, release)
    evidence: dict[str, Any] = {}
    for what, given, compare in (("schema", schema, _schema), ("ledger", ledger, _ledger)):
        if given is None:
            others.append({"what": _UNASKED[what], "why": f"no {what} was given"})
            continue
        evidence[what] = compare(given, release)
        checks += evidence[what].pop("checks")
        others += evidence[what].pop("not_checked", [])
    evidence["signatures"], unsigned = _signatures(path, key, signature)
    checks += [held["check"] for held in evidence["signatures"]]
    others += unsigned
    if path is None:
        others.append({"what": "what else its file holds", "why": "the release was not read from a file"})
    else:
        plain, not_plain = check_contents(name, release)
        checks, others = checks + plain, others + not_plain
        if found_digest != file_digest(path):
            raise FileError(f"{name!r} changed while it was read; verify it again when nothing writes to it")
    return VerificationReport(name, _facts(release, found_digest), guarantee, evidence, tuple(checks), tuple(others))


def _facts(release: Release, found_digest: str) -> dict[str, Any]:
    card = release.card
    return {
        "is_private": card.is_private,
        "epsilon": str(card.epsilon),
        "delta": str(card.delta),
        "unit": card.unit,
        "digest": found_digest,
        "schema_digest": schema_digest(card.schema if card.people is None else card.people),
        "spinney_version": card.spinney_version,
        "commit": commit_of(card.spinney_version),
    }


# ------------------------------------------------------------------------------------------------------------- evidence
# What stands outside the release file: its stated schema, the ledger that was charged, signatures.


_MOST_DIFFERENCES = 20


def _schema(given: Any, release: Release) -> dict[str, Any]:
    """The stated schema is that of the release, but for what a fit fills in; a FileError says what differs."""
    named = "the schema given" if isinstance(given, (Schema, Tables)) else repr(str(given))
    stated = given if isinstance(given, (Schema, Tables)) else _stated(given)
    compared = compare_schema(stated, release.card.schema, release.card.people, release.card.events)
    if compared.differences:
        shown = "; ".join(compared.differences[:_MOST_DIFFERENCES])
        more = len(compared.differences) - _MOST_DIFFERENCES
        raise FileError(
            f"{named} is not the schema of this release: {shown}{f'; and {more} more differences' if more > 0 else ''}"
        )
    named = named if named == "the schema given" else f"the schema {named}"
    check = f"{named} (sha256 {compared.stated_digest}) is that of the release"
    return {
        "file": None if isinstance(given, (Schema, Tables)) else str(given),
        "digest": compared.stated_digest,
        "filled_in": list(compared.filled_in),
        "checks": [check, *compared.filled_in],
    }


def _stated(path: Any) -> Schema | Tables:
    """A schema file, or a file of linked tables."""
    if not isinstance(path, (str, Path)):
        raise ParameterError(f"schema={as_given(path)} is neither a schema, nor linked tables, nor the file of either")
    is_of_tables = "tables" in parse_toml(read_schema_text(path))
    return Tables.from_file(path) if is_of_tables else Schema.from_file(path)


def _ledger(given: Any, release: Release) -> dict[str, Any]:
    """The ledger holds the charges of the release; a FileError where it does not."""
    ledger, place = given, None
    if not isinstance(given, (Ledger, str, PathLike)):
        raise ParameterError(f"ledger={as_given(given)} is not a ledger, nor the path or address of one")
    if not isinstance(given, Ledger):
        place = str(given)
        ledger = SharedLedger(store_at(place))
    named = "the ledger given" if place is None else f"the ledger {place!r}"
    found = find_charge(ledger, release)
    if found is None and not release.card.events:
        return {"file": place, "checks": ["the release was charged nothing, so no ledger has to hold it"]}
    if found is None:
        raise FileError(
            f"{named} does not hold the charges of this release: it is another ledger, or the release was made without "
            "charging it"
        )
    which = numbered(found.entries) + ("" if found.population is None else f" of the population {found.population!r}")
    check = f"{named} holds these very charges: {which}"
    if found.by_digest:
        check = f"{named} names this very release, with the charges on its card: {found.said}"
    others = []
    if not found.by_digest:
        many = "" if found.n_runs == 1 else f"; it holds such charges {found.n_runs} times"
        why = f"the ledger says what was charged, not for which file{many}"
        others.append({"what": "that the ledger was charged for this very file", "why": why})
    described: dict[str, Any] = {
        "file": place,
        "first_entry": found.first,
        "n_entries": found.n_events,
        "times_held": found.n_runs,
    }
    described |= {"entries": list(found.entries), "population": found.population}
    return described | {"checks": [check], "not_checked": others}


def _signatures(path: Path | None, key: Any, signature: Any) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """All signatures that there are hold, by the key; without a key, what was not checked."""
    if key is not None and path is None:
        raise ParameterError(
            "key: a signature is of a file; save the release, have it signed, and verify sp.load(FILE)"
        )
    beside = Path(f"{path}{ENDING}")
    found: dict[str, Callable[[], Signature]] = {}
    if signature is not None or (path is not None and beside.is_file()):
        named = beside if signature is None else signature
        found[f"the signature {str(named)!r}"] = lambda: read_signature(named)
    inside = None if path is None else signature_inside(path)
    if inside is not None:
        found["the signature inside the file"] = lambda: inside
    if key is None:
        why = "no key was given" if found else "there is no signature"
        return [], [{"what": "who vouches for the file", "why": why}]
    assert path is not None
    if not found:
        raise FileError(f"{str(path)!r} is not signed: there is no {str(beside)!r}, and no signature inside it")
    public, held = load_public_key(key), []
    for where, read in found.items():
        signed = read()
        check_signature(signed, path, public, where)
        said = f"{where} holds: by the key {signed.key[:16]}..., at {signed.signed_at} by the signer's word"
        held.append({"check": said, "key": signed.key, "signed_at": signed.signed_at})
    return held, []
