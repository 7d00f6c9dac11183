"""`spinney keygen`, `sign` and `verify`: keys, signatures, and the guarantee of a file computed again.

`verify` recomputes the guarantee of a release from its charges, and lists what it did not check: no file can
prove that noise was really drawn. A schema, a ledger and signatures are compared where they are given
(`release/verify.py`, `release/provenance.py`).

    sign       keys of one's own, and signatures of release files
    verify     the verb, and its page
    evidence   the stated schema, the ledger, and the signatures
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, json_option, warn_of_brands
from spinney.text import json_text, printable, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.release.provenance import Signature
    from spinney.release.release import Release


# ----------------------------------------------------------------------------------------------------------------- sign
# `spinney keygen` and `spinney sign`: keys of one's own, and signatures of release files by them.


_PUBLIC = ".pub.pem"


@click.command(
    cls=Verb,
    examples=(
        "spinney keygen office.pem",
        "spinney keygen office.pem --public office-public.pem --password",
        "SPINNEY_KEY_PASSWORD=... spinney keygen office.pem --password",
    ),
)
@click.argument("private", type=click.Path(dir_okay=False))
@click.option("--public", metavar="FILE", help="Where the public key goes. Default: PRIVATE with the ending .pub.pem.")
@click.option(
    "--password",
    "is_locked",
    is_flag=True,
    help="Encrypt the private key with a password, which SPINNEY_KEY_PASSWORD holds or which is asked for.",
)
def keygen(private: str, public: str | None, is_locked: bool) -> None:
    """Make a new key to sign releases with: PRIVATE, which you keep, and a public one, which you give away.

    Both are PEM files of an Ed25519 key, as openssl makes them. PRIVATE can be read by you alone. Files that exist are
    never overwritten.
    """
    from spinney.release.provenance import fingerprint, write_key_pair

    public = str(Path(private).with_suffix("")) + _PUBLIC if public is None else public
    password = _new_password() if is_locked else None
    key = write_key_pair(private, public, password=password)
    click.echo(f"wrote {private}, which you keep, and {public}, which you give to whoever checks")
    click.echo(f"  key sha256 {fingerprint(key)}")


@click.command(
    cls=Verb,
    examples=(
        "spinney sign people.spinney --key office.pem",
        "spinney sign people.spinney --key office.pem --out signatures/people.sig",
        "spinney sign people.spinney --key office.pem --embed",
        "SPINNEY_KEY_PASSWORD=... spinney sign people.spinney --key office.pem --time 2026-11-17T09:30:00Z",
    ),
)
@click.argument("release", type=FILE)
@click.option("--key", "key_path", required=True, type=FILE, metavar="FILE", help="Your private key, a PEM file.")
@click.option(
    "--out",
    metavar="FILE",
    help="Where the signature goes, or, with --embed, the signed release. Default: RELEASE.sig; with --embed, RELEASE.",
)
@click.option(
    "--embed", is_flag=True, help="Put the signature inside the release file. Its digest and all readers stay the same."
)
@click.option(
    "--time", "stated", metavar="TIME", help="The time that you state, in place of now: 2026-11-17T09:30:00Z."
)
@force_option
def sign(release: str, key_path: str, out: str | None, embed: bool, stated: str | None, force: bool) -> None:
    """Sign RELEASE with your private key, after computing its guarantee again.

    The signature says that the holder of the key vouches for this very file: its digest, its format version and a time
    that you state. It does not make the release more private. `spinney verify RELEASE --key PUBLIC` checks it. A key
    with a password takes it from SPINNEY_KEY_PASSWORD, or asks for it.
    """
    from spinney.errors import FileError
    from spinney.release.file import check_contents, file_digest, load
    from spinney.release.provenance import (
        ENDING,
        embed_signature,
        is_loose,
        load_private_key,
        stated_time,
        write_signature,
    )
    from spinney.release.provenance import sign as sign_file
    from spinney.synthesizers.verify import verified_numbers

    signed_at = stated_time(stated)
    target = out or (release if embed else f"{release}{ENDING}")
    is_itself = embed and Path(target).resolve() == Path(release).resolve()
    if not is_itself:
        check_output(target, force=force, inputs=[release, key_path])
    if is_loose(key_path):
        click.secho(
            f"warning: others than you can read {key_path}; run chmod 600 {key_path}, and consider a new key",
            err=True,
            fg="yellow",
        )
    key = load_private_key(key_path, _password)
    digest = file_digest(release)
    loaded = load(release)
    verified_numbers(release, loaded)
    check_contents(release, loaded)
    warn_of_brands(loaded.card)
    signature = sign_file(release, key, signed_at=signed_at)
    if signature.digest != digest:
        raise FileError(f"{release!r} changed while it was read; sign it again when nothing writes to it")
    if embed:
        embed_signature(release, target, signature, overwrite=force or is_itself)
    else:
        write_signature(target, signature, overwrite=force)
    click.echo(f"wrote {target}, signed at {signature.signed_at} by the key {signature.key[:16]}...")
    click.echo(f"  digest sha256 {signature.digest}")


def _password() -> bytes | None:
    """The password of an encrypted key: of the environment, or asked for where somebody is there to answer."""
    from spinney.release.provenance import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given.encode()
    if not sys.stdin.isatty():
        return None
    return str(click.prompt("password of the key", hide_input=True, err=True)).encode()


def _new_password() -> bytes:
    from spinney.errors import ParameterError
    from spinney.release.provenance import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given.encode()
    if not sys.stdin.isatty():
        raise ParameterError(f"--password: nobody is there to be asked for one; set {PASSWORD_VARIABLE}")
    return str(click.prompt("password of the new key", hide_input=True, confirmation_prompt=True, err=True)).encode()


# --------------------------------------------------------------------------------------------------------------- verify
# `spinney verify`: the guarantee of a release file, computed again from its charges, and what was not checked.


@click.command(
    cls=Verb,
    examples=(
        "spinney verify people.spinney",
        "spinney verify people.spinney --schema schema.toml",
        "spinney verify people.spinney --ledger people.ledger",
        "spinney verify people.spinney --key office.pub.pem",
        "spinney verify people.spinney --json | jq .not_checked",
    ),
)
@click.argument("release", type=FILE)
@click.option(
    "--schema",
    "schema_path",
    type=FILE,
    metavar="FILE",
    help="The schema that was stated beforehand, or the file of linked tables: whether it is that of the release.",
)
@click.option(
    "--ledger",
    "ledger_path",
    type=FILE,
    metavar="FILE",
    help="Whether this ledger holds the charges of the release.",
)
@click.option("--key", "key_path", type=FILE, metavar="FILE", help="The public key to check the signature with.")
@click.option(
    "--signature",
    "signature_path",
    type=FILE,
    metavar="FILE",
    help="The signature. Default: RELEASE.sig where it is there, and the one inside RELEASE.",
)
@json_option
def verify(
    release: str,
    schema_path: str | None,
    ledger_path: str | None,
    key_path: str | None,
    signature_path: str | None,
    as_json: bool,
) -> None:
    """Compute the guarantee of RELEASE again, and compare it with its card.

    Checks that every number in the file is possible, that its charges cost what the card states, and that numbers which
    occur more than once agree. A forest that holds its noisy counts is fitted to them again, which has to give its
    model, and the weights of regressions that were named before the fit are chosen again. Prints what was checked, the
    guarantee that results, and what could not be checked and why. Exits with status 1 and a reason if something does
    not hold.

    --schema, --ledger and --key compare the file with what others hold: the schema that was stated, the account that
    was charged, the key of whoever signed.

    No file can prove that the noise was really drawn, or that sensitivities are right: for that you have to trust
    whoever made the release.
    """
    from spinney.errors import FileError
    from spinney.release.file import check_contents, file_digest, load
    from spinney.synthesizers.verify import verified_numbers

    digest = file_digest(release)
    loaded = load(release)
    guarantee, checks, others = verified_numbers(release, loaded)
    asked: dict[str, Any] = {}
    for name, path, compare in (
        ("schema", schema_path, _schema),
        ("ledger", ledger_path, _ledger),
    ):
        if path is None:
            others.append({"what": _UNASKED[name], "why": f"no --{name} was given"})
            continue
        asked[name] = compare(path, loaded)
        checks += asked[name].pop("checks")
        others += asked[name].pop("not_checked", [])
    asked["signatures"], of_signatures = _signatures(release, key_path, signature_path)
    checks += [signature["check"] for signature in asked["signatures"]]
    others += of_signatures
    plain, not_plain = check_contents(release, loaded)
    checks += plain
    others += not_plain
    if digest != file_digest(release):
        raise FileError(f"{release!r} changed while it was read; verify it again when nothing writes to it")
    warn_of_brands(loaded.card)
    described = _described(loaded, digest) | {"guarantee": guarantee} | asked
    described |= {"checks": checks, "not_checked": others}
    if as_json:
        click.echo(json_text(described))
        return
    click.echo("\n".join(printable(line) for line in _lines(release, described)))


_UNASKED = {
    "schema": "that the schema is the one that was stated beforehand",
    "ledger": "that a ledger was charged for this release",
}


def _described(release: Release, digest: str) -> dict[str, Any]:
    from spinney.files import commit_of
    from spinney.schema.linked import schema_digest

    card = release.card
    return {
        "is_private": card.is_private,
        "epsilon": str(card.epsilon),
        "delta": str(card.delta),
        "unit": card.unit,
        "digest": digest,
        "schema_digest": schema_digest(card.schema if card.people is None else card.people),
        "spinney_version": card.spinney_version,
        "commit": commit_of(card.spinney_version),
    }


def _lines(release: str, found: dict[str, Any]) -> list[str]:
    """The page: what holds, what was compared, and what was not."""
    return [
        f"{release}: the card and the released numbers agree. No file can prove that the noise was really drawn.",
        f"  guarantee   {found['guarantee']}",
        f"  digest      sha256 {found['digest']}",
        f"  schema      sha256 {found['schema_digest']}",
        f"  made by     spinney {found['spinney_version']}"
        + ("" if found["commit"] is None else f", commit {found['commit']}"),
        "  checked",
        *_listed(found["checks"]),
        "  not checked",
        *_listed([f"{other['what']}: {other['why']}" for other in found["not_checked"]]),
    ]


def _listed(entries: list[str]) -> list[str]:
    return [line for entry in entries for line in wrapped(entry, " " * 4, " " * 6)]


# ------------------------------------------------------------------------------------------------------------- evidence
# What stands outside the release file: its stated schema, the ledger that was charged, signatures.


def _schema(path: str, release: Release) -> dict[str, Any]:
    """The stated schema is that of the release, but for what a fit fills in; a FileError says what differs."""
    from spinney.errors import FileError
    from spinney.release.provenance import compare_schema

    compared = compare_schema(_stated(path), release.card.schema, release.card.people, release.card.events)
    if compared.differences:
        shown = "; ".join(compared.differences[:_MOST_DIFFERENCES])
        more = len(compared.differences) - _MOST_DIFFERENCES
        raise FileError(
            f"{path!r} is not the schema of this release: {shown}{f'; and {more} more differences' if more > 0 else ''}"
        )
    check = f"the schema {path!r} (sha256 {compared.stated_digest}) is that of the release"
    return {
        "file": path,
        "digest": compared.stated_digest,
        "filled_in": list(compared.filled_in),
        "checks": [check, *compared.filled_in],
    }


_MOST_DIFFERENCES = 20


def _stated(path: str) -> Any:
    """A schema file, or a file of linked tables."""
    from spinney.schema.linked import Tables
    from spinney.schema.plain import parse_toml, read_schema_text
    from spinney.schema.schema import Schema

    is_of_tables = "tables" in parse_toml(read_schema_text(path))
    return Tables.from_file(path) if is_of_tables else Schema.from_file(path)


def _ledger(path: str, release: Release) -> dict[str, Any]:
    """The ledger holds the charges of the release; a FileError where it does not."""
    from spinney.errors import FileError
    from spinney.privacy.accounts.shared import SharedLedger, store_at
    from spinney.privacy.accounts.verifying import numbered
    from spinney.release.provenance import find_charge

    ledger = SharedLedger(store_at(path))
    found = find_charge(ledger, release)
    if found is None and not release.card.events:
        return {"file": path, "checks": ["the release was charged nothing, so no ledger has to hold it"]}
    if found is None:
        raise FileError(
            f"the ledger {path!r} does not hold the charges of this release: it is another ledger, or the release was "
            "made without charging it"
        )
    which = f"{numbered(found.entries)} of the population {found.population!r}"
    check = f"the ledger {path!r} holds these very charges: {which}"
    if found.by_digest:
        check = f"the ledger {path!r} names this very release, with the charges on its card: {found.said}"
    others = []
    if not found.by_digest:
        many = "" if found.n_runs == 1 else f"; it holds such charges {found.n_runs} times"
        why = f"the ledger says what was charged, not for which file{many}"
        others.append({"what": "that the ledger was charged for this very file", "why": why})
    described = {"file": path, "first_entry": found.first, "n_entries": found.n_events, "times_held": found.n_runs}
    described |= {"entries": list(found.entries), "population": found.population}
    return described | {"checks": [check], "not_checked": others}


def _signatures(
    release: str, key_path: str | None, signature_path: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """All signatures that there are hold, by the key; without a key, what was not checked."""
    from spinney.errors import FileError
    from spinney.release.provenance import ENDING, check_signature, read_signature, signature_inside

    beside = Path(f"{release}{ENDING}")
    found: dict[str, Callable[[], Signature]] = {}
    if signature_path is not None or beside.is_file():
        named = str(beside) if signature_path is None else signature_path
        found[f"the signature {named!r}"] = lambda: read_signature(named)
    inside = signature_inside(release) if key_path is not None or signature_path is None else None
    if inside is not None:
        found["the signature inside the file"] = lambda: inside
    if key_path is None:
        if signature_path is not None:
            raise click.UsageError("--signature needs --key FILE, the public key of whoever signed")
        why = "no --key was given" if found else "there is no signature"
        return [], [{"what": "who vouches for the file", "why": why}]
    if not found:
        raise FileError(f"{release!r} is not signed: there is no {str(beside)!r}, and no signature inside it")
    from spinney.release.provenance import load_public_key

    key, held = load_public_key(key_path), []
    for where, read in found.items():
        signature = read()
        check_signature(signature, release, key, where)
        said = f"{where} holds: by the key {signature.key[:16]}..., at {signature.signed_at} by the signer's word"
        held.append({"check": said, "key": signature.key, "signed_at": signature.signed_at})
    return held, []
