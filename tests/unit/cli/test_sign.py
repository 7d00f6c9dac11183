"""Keys and signatures on the command line: whose they are, of which file, and what is wrong with those that are not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.release.file import FORMAT_VERSION, file_digest
from support.command_line import spinney
from support.forgeries import forged, members_of

AT = "2026-11-17T09:30:00Z"


def saved(path: Path, *, epsilon: str = "1", seed: int = 0) -> Path:
    rows = np.random.default_rng(seed).random((200, 2))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    sp.GridSynthesizer(epsilon, bins=3).fit(rows, schema).save(path)
    return path


@pytest.fixture
def here(tmp_path):
    """A folder with a release, another one, and two pairs of keys."""
    saved(tmp_path / "r.spinney")
    saved(tmp_path / "other.spinney", seed=1)
    for name in ("office", "stranger"):
        assert spinney("keygen", tmp_path / f"{name}.pem").status == 0
    return tmp_path


def signed(here: Path, *options: object) -> Path:
    run = spinney("sign", here / "r.spinney", "--key", here / "office.pem", "--time", AT, *options)
    assert run.status == 0, run.err
    return here / "r.spinney.sig"


def checked(here: Path, *options: object, key: str = "office", release: str = "r.spinney"):
    return spinney("verify", here / release, "--key", here / f"{key}.pub.pem", *options)


def test_a_signature_beside_the_file(here):
    """Says digest, format, time and key, and holds by the public key."""
    text = signed(here).read_text(encoding="ascii")
    assert text.splitlines()[:4] == [
        "spinney release signature 1",
        f"digest sha256 {file_digest(here / 'r.spinney')}",
        f"release-format {FORMAT_VERSION}",
        f"signed-at {AT}",
    ]
    run = checked(here)
    assert run.status == 0
    assert f"at {AT} by the signer's word" in " ".join(run.out.split())  # lines are of a width
    described = checked(here, "--json").json
    assert described["signatures"][0]["signed_at"] == AT
    assert "who vouches" not in " ".join(other["what"] for other in described["not_checked"])


def test_a_signature_inside_the_file(here):
    """Leaves digest, release and all readers as they were; saved again the file is the one from before."""
    before, digest = (here / "r.spinney").read_bytes(), file_digest(here / "r.spinney")
    signed(here, "--embed")
    assert not (here / "r.spinney.sig").exists()
    assert file_digest(here / "r.spinney") == digest
    assert checked(here).status == 0
    sp.load(here / "r.spinney").save(here / "again.spinney")
    assert (here / "again.spinney").read_bytes() == before
    assert spinney("card", here / "r.spinney").status == 0
    names = zipfile.ZipFile(here / "r.spinney").namelist()
    assert names[-1] == "signature.txt"
    signed(here, "--embed")  # once more: the first is replaced
    assert zipfile.ZipFile(here / "r.spinney").namelist() == names
    run = spinney("sign", here / "r.spinney", "--key", here / "office.pem", "--embed", "--out", here / "copy.spinney")
    assert run.status == 0
    assert checked(here, release="copy.spinney").status == 0


def test_without_a_key_a_signature_is_not_checked_and_told(here):
    signed(here)
    described = spinney("verify", here / "r.spinney", "--json").json
    assert {"what": "who vouches for the file", "why": "no key was given"} in described["not_checked"]
    assert spinney("verify", here / "r.spinney", "--signature", here / "r.spinney.sig").status == 2


def test_files_without_a_signature(here):
    run = checked(here)
    assert run.status == 1
    assert "is not signed" in run.err


def test_the_wrong_key(here):
    signed(here)
    run = checked(here, key="stranger")
    assert run.status == 1
    assert "take the public key of whoever signed" in run.err


def test_a_stranger_who_names_the_right_key(here):
    """The digest of the office's key above a stranger's signature."""
    path = signed(here)
    right = path.read_text(encoding="ascii")
    spinney("sign", here / "r.spinney", "--key", here / "stranger.pem", "--time", AT, "--force")
    wrong = path.read_text(encoding="ascii")
    path.write_text(right.partition("\n\n")[0] + "\n\n" + wrong.partition("\n\n")[2], encoding="ascii")
    run = checked(here)
    assert run.status == 1
    assert "does not hold" in run.err


def test_a_signature_of_another_release(here):
    path = signed(here)
    shutil.copy(path, here / "other.spinney.sig")
    run = checked(here, release="other.spinney")
    assert run.status == 1
    assert "of another release" in run.err


def test_a_file_that_was_changed_after_signing(here):
    """A member more, a member changed, an order of members that is another: each has another digest."""
    signed(here)
    honest = members_of(here / "r.spinney")
    changes = {
        "more": lambda members: members.update({"extra.txt": b"hello"}),
        "order": lambda members: [members.update({name: members.pop(name)}) for name in list(members)[:1]],
        "spaces": lambda members: None,  # the card as JSON of another spelling
    }
    for name, change in changes.items():
        forged(here / "r.spinney", change, here / f"{name}.spinney")
        shutil.copy(here / "r.spinney.sig", here / f"{name}.spinney.sig")
        assert checked(here, release=f"{name}.spinney").status == 1, name
    assert honest


DAMAGE = {
    "cut off": lambda text: text[:-20],
    "nothing": lambda text: "",
    "a line less": lambda text: text.replace(f"release-format {FORMAT_VERSION}\n", ""),
    "another time": lambda text: text.replace(AT, "2020-01-01T00:00:00Z"),
    "a time that is none": lambda text: text.replace(AT, "2026-13-45T09:30:00Z"),
    "another digest": lambda text: text.replace("digest sha256 ", "digest sha256 0")[: len(text)],
    "another format": lambda text: text.replace(f"release-format {FORMAT_VERSION}", "release-format 2"),
    "another purpose": lambda text: text.replace("release signature 1", "ledger signature 1"),
    "a space more": lambda text: text.replace("key sha256", "key  sha256"),
    "text behind it": lambda text: text + "approved by the board\n",
    "other ends of lines": lambda text: text.replace("\n", "\r\n"),
    "not text": lambda text: "\x00\xff" * 40,
    "very long": lambda text: text * 100,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_signatures_that_were_changed(here, damage):
    """What is signed has one spelling; nothing but it holds."""
    path = signed(here)
    path.write_text(damage(path.read_text(encoding="ascii")), encoding="latin-1", newline="")
    assert checked(here).status == 1


def test_a_good_signature_beside_does_not_hide_a_bad_one_inside(here):
    """All that are there have to hold."""
    signed(here)
    assert checked(here).status == 0
    run = spinney("sign", here / "r.spinney", "--key", here / "stranger.pem", "--embed")
    assert run.status == 0
    assert checked(here).status == 1


def test_contradictions_are_not_signed(here):
    forged(here / "r.spinney", lambda members: members["card.json"]["card"].update(epsilon="1/9"), here / "bad.spinney")
    run = spinney("sign", here / "bad.spinney", "--key", here / "office.pem")
    assert run.status == 1
    assert "inconsistent contents" in run.err
    assert not (here / "bad.spinney.sig").exists()


# ------------------------------------------------------------------------------------------------------------- keys


def test_keys_are_for_their_owner_and_never_overwritten(here):
    """Neither half, not by a link either; and the private key is of mode 600."""
    private = here / "office.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = private.read_bytes(), (here / "office.pub.pem").read_bytes()
    assert spinney("keygen", private).status == 1
    run = spinney("keygen", here / "new.pem", "--public", here / "office.pub.pem")
    assert run.status == 1
    assert "never overwritten" in run.err
    assert not (here / "new.pem").exists()
    os.symlink(here / "nowhere", here / "link.pem")
    assert spinney("keygen", here / "link.pem").status == 1
    assert spinney("keygen", here / "same.pem", "--public", here / "same.pem").status == 2
    assert (private.read_bytes(), (here / "office.pub.pem").read_bytes()) == before


def test_loose_keys_are_told(here):
    (here / "office.pem").chmod(0o644)
    run = spinney("sign", here / "r.spinney", "--key", here / "office.pem")
    assert run.status == 0
    assert "chmod 600" in run.err


def test_keys_with_a_password(here, monkeypatch):
    """From the environment; without one, or with another, nothing is signed, and neither is shown."""
    monkeypatch.setenv("SPINNEY_KEY_PASSWORD", "correct horse")
    assert spinney("keygen", here / "locked.pem", "--password").status == 0
    assert b"ENCRYPTED" in (here / "locked.pem").read_bytes()
    told = ("sign", here / "r.spinney", "--key", here / "locked.pem")
    assert spinney(*told).status == 0
    assert spinney("verify", here / "r.spinney", "--key", here / "locked.pub.pem").status == 0
    monkeypatch.setenv("SPINNEY_KEY_PASSWORD", "battery staple")
    run = spinney(*told, "--force", markers=("battery staple", "correct horse"))
    assert run.status == 1
    assert "the password is wrong" in run.err
    monkeypatch.delenv("SPINNEY_KEY_PASSWORD")
    run = spinney(*told, "--force")
    assert run.status == 1
    assert "SPINNEY_KEY_PASSWORD" in run.err
    assert spinney("keygen", here / "more.pem", "--password").status == 2


def test_keys_that_are_none(here):
    """No PEM, a public key to sign with, a private one to check with, and one of another kind."""
    (here / "text.pem").write_text("SECRETS", encoding="ascii")
    signed(here)
    assert spinney("sign", here / "r.spinney", "--key", here / "text.pem", "--force").status == 1
    assert spinney("sign", here / "r.spinney", "--key", here / "office.pub.pem", "--force").status == 1
    run = spinney("verify", here / "r.spinney", "--key", here / "office.pem")
    assert run.status == 1
    assert "private key" in run.err
    assert spinney("verify", here / "r.spinney", "--key", here / "text.pem").status == 1


def test_times_that_are_none(here):
    for time in ("yesterday", "2026-11-17", "2026-11-17T09:30:00"):
        assert spinney("sign", here / "r.spinney", "--key", here / "office.pem", "--time", time).status == 2
    run = spinney("sign", here / "r.spinney", "--key", here / "office.pem", "--time", "2026-11-17T10:30:00+01:00")
    assert AT in run.out


def test_nothing_is_overwritten_unasked(here):
    path = signed(here)
    before = path.read_bytes()
    assert spinney("sign", here / "r.spinney", "--key", here / "stranger.pem").status == 2
    assert path.read_bytes() == before
    key = here / "office.pem"
    assert spinney("sign", here / "r.spinney", "--key", key, "--out", key, "--force").status == 2


# ---------------------------------------------------------------------------------------------------------- openssl


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on this machine")
def test_openssl_checks_signatures_and_makes_keys(here):
    """By the commands of the page: the text before the empty line, and what follows it in base64."""
    signed(here)
    script = """
    sed '/^$/,$d' r.spinney.sig > message
    sed '1,/^$/d' r.spinney.sig | base64 -d > signature
    openssl pkeyutl -verify -pubin -inkey office.pub.pem -rawin -in message -sigfile signature
    openssl pkeyutl -verify -pubin -inkey stranger.pub.pem -rawin -in message -sigfile signature && exit 9
    openssl pkey -pubin -in office.pub.pem -outform DER | sha256sum | cut -d' ' -f1 > key
    openssl genpkey -algorithm ed25519 -out theirs.pem && openssl pkey -in theirs.pem -pubout -out theirs.pub.pem
    """
    run = subprocess.run(["/bin/sh", "-c", script], cwd=here, capture_output=True, text=True, check=False)
    if "unknown option" in run.stderr.lower():
        pytest.skip("this openssl does not know -rawin")
    assert run.returncode == 0, run.stderr
    assert "Verified Successfully" in run.stdout
    named = (here / "key").read_text(encoding="ascii").strip()
    assert f"key sha256 {named}" in (here / "r.spinney.sig").read_text(encoding="ascii")
    assert spinney("sign", here / "r.spinney", "--key", here / "theirs.pem", "--force").status == 0
    assert spinney("verify", here / "r.spinney", "--key", here / "theirs.pub.pem").status == 0
