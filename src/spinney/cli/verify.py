"""`spinney keygen`, `sign` and `verify`: keys, signatures, and the guarantee of a file computed again.

`verify` recomputes the guarantee of a release from its charges, and lists what it did not check: no file can
prove that noise was really drawn (`synthesizers/verify.py`).

    sign       keys of one's own, and signatures of release files
    verify     the verb
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from spinney.cli.command import (
    FILE,
    Verb,
    caution,
    check_output,
    force_option,
    json_option,
    option,
    show,
    warn_of_brands,
)
from spinney.errors import FileError, ParameterError

# ----------------------------------------------------------------------------------------------------------------- sign
# `spinney keygen` and `spinney sign`: keys of one's own, and signatures of release files by them.


_PUBLIC = ".pub.pem"


@click.command(cls=Verb)
@click.argument("private", type=click.Path(dir_okay=False))
@option("--public FILE", "Where the public key goes. Default: PRIVATE with the ending .pub.pem.")
@option(
    "--password",
    "Encrypt the private key with a password, which SPINNEY_KEY_PASSWORD holds or which is asked for.",
    name="is_locked",
)
def keygen(private: str, public: str | None, is_locked: bool) -> None:
    """Make a new key to sign releases with: PRIVATE, which you keep, and a public one, which you give away.

    Both are PEM files of an Ed25519 key, as openssl makes them. PRIVATE can be read by you alone. Files that exist are
    never overwritten.

    Examples:
        spinney keygen office.pem
        spinney keygen office.pem --public office-public.pem --password
        SPINNEY_KEY_PASSWORD=... spinney keygen office.pem --password
    """
    from spinney.release.provenance import fingerprint, write_key_pair

    public = str(Path(private).with_suffix("")) + _PUBLIC if public is None else public
    password = _password(is_new=True) if is_locked else None
    key = write_key_pair(private, public, password=password)
    click.echo(f"wrote {private}, which you keep, and {public}, which you give to whoever checks")
    click.echo(f"  key sha256 {fingerprint(key)}")


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option("--key FILE", "Your private key, a PEM file.", name="key_path", required=True, type=FILE)
@option(
    "--out FILE",
    "Where the signature goes, or, with --embed, the signed release. Default: RELEASE.sig; with --embed, RELEASE.",
)
@option("--embed", "Put the signature inside the release file. Its digest and all readers stay the same.")
@option("--time TIME", "The time that you state, in place of now: 2026-11-17T09:30:00Z.", name="stated")
@force_option
def sign(release: str, key_path: str, out: str | None, embed: bool, stated: str | None, force: bool) -> None:
    """Sign RELEASE with your private key, after computing its guarantee again.

    The signature says that the holder of the key vouches for this very file: its digest, its format version and a time
    that you state. It does not make the release more private. `spinney verify RELEASE --key PUBLIC` checks it. A key
    with a password takes it from SPINNEY_KEY_PASSWORD, or asks for it.

    Examples:
        spinney sign people.spinney --key office.pem
        spinney sign people.spinney --key office.pem --out signatures/people.sig
        spinney sign people.spinney --key office.pem --embed
        SPINNEY_KEY_PASSWORD=... spinney sign people.spinney --key office.pem --time 2026-11-17T09:30:00Z
    """
    from spinney.files import write_whole
    from spinney.release.file import check_contents, file_digest, load, with_signature
    from spinney.release.provenance import ENDING, is_loose, load_private_key, stated_time
    from spinney.release.provenance import sign as sign_file
    from spinney.synthesizers.verify import verified_numbers

    signed_at = stated_time(stated)
    target = out or (release if embed else f"{release}{ENDING}")
    is_itself = embed and Path(target).resolve() == Path(release).resolve()
    if not is_itself:
        check_output(target, force=force, inputs=[release, key_path])
    if is_loose(key_path):
        caution(f"others than you can read {key_path}; run chmod 600 {key_path}, and consider a new key", "warning")
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
        with_signature(release, target, str(signature).encode("ascii"), overwrite=force or is_itself)
    else:
        write_whole(target, str(signature), overwrite=force)
    click.echo(f"wrote {target}, signed at {signature.signed_at} by the key {signature.key[:16]}...")
    click.echo(f"  digest sha256 {signature.digest}")


def _password(*, is_new: bool = False) -> bytes | None:
    """The password of a key: of the environment, or asked for where somebody is there to answer."""
    from spinney.release.provenance import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given.encode()
    if sys.stdin.isatty():
        what = "password of the new key" if is_new else "password of the key"
        return str(click.prompt(what, hide_input=True, confirmation_prompt=is_new, err=True)).encode()
    if is_new:
        raise ParameterError(f"--password: nobody is there to be asked for one; set {PASSWORD_VARIABLE}")
    return None


# --------------------------------------------------------------------------------------------------------------- verify
# `spinney verify`: the guarantee of a release file, computed again from its charges, and what was not checked.


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option(
    "--schema FILE",
    "The schema that was stated beforehand, or the file of linked tables: whether it is that of the release.",
    name="schema_path",
    type=FILE,
)
@option("--ledger FILE", "Whether this ledger holds the charges of the release.", name="ledger_path", type=FILE)
@option("--key FILE", "The public key to check the signature with.", name="key_path", type=FILE)
@option(
    "--signature FILE",
    "The signature. Default: RELEASE.sig where it is there, and the one inside RELEASE.",
    name="signature_path",
    type=FILE,
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

    Examples:
        spinney verify people.spinney
        spinney verify people.spinney --schema schema.toml
        spinney verify people.spinney --ledger people.ledger
        spinney verify people.spinney --key office.pub.pem
        spinney verify people.spinney --json | jq .not_checked
    """
    from spinney.release.file import file_digest, load

    digest = file_digest(release)
    loaded = load(release)
    found = loaded.verify(schema=schema_path, ledger=ledger_path, key=key_path, signature=signature_path)
    if digest != found.digest:
        raise FileError(f"{release!r} changed while it was read; verify it again when nothing writes to it")
    warn_of_brands(loaded.card)
    show(found, as_json=as_json)
