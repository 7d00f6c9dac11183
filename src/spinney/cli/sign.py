"""`spinney keygen` and `spinney sign`: keys of one's own, and signatures of release files by them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, warn_of_brands

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
    from spinney.release.keys import write_key_pair
    from spinney.release.signature import fingerprint

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
    from spinney.release.keys import is_loose, load_private_key
    from spinney.release.signature import ENDING, embed_signature, stated_time, write_signature
    from spinney.release.signature import sign as sign_file
    from spinney.release.storage import file_digest, load
    from spinney.release.whole_file import check_contents
    from spinney.synthesizers.replan import verified_numbers

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
    from spinney.release.keys import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given.encode()
    if not sys.stdin.isatty():
        return None
    return str(click.prompt("password of the key", hide_input=True, err=True)).encode()


def _new_password() -> bytes:
    from spinney.errors import ParameterError
    from spinney.release.keys import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given:
        return given.encode()
    if not sys.stdin.isatty():
        raise ParameterError(f"--password: nobody is there to be asked for one; set {PASSWORD_VARIABLE}")
    return str(click.prompt("password of the new key", hide_input=True, confirmation_prompt=True, err=True)).encode()
