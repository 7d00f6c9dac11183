"""Ed25519 keys in PEM files, as openssl writes and reads them; `cryptography` does the work, and is loaded on use.

A private key is PKCS#8, encrypted where a password is given, in a file that its owner alone can read. No key file is
ever written over. What is wrong with a key is said without a word of its contents.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinney.errors import FileError, ParameterError
from spinney.extras import load_optional

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PASSWORD_VARIABLE = "SPINNEY_KEY_PASSWORD"  # noqa: S105  # the name of a variable
_LARGEST = 1 << 16
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
        except Exception as err:
            raise _no_key(path, "private", err) from None
    except Exception as err:  # the library has errors of many kinds for what is no key
        raise _no_key(path, "private", err) from None
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
    except Exception as err:
        raise _no_key(path, "public", err) from None
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
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
    if len(content) > _LARGEST:
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


def _no_key(path: str | Path, which: str, err: Exception) -> FileError:
    """An error that says nothing of what the file holds."""
    del err
    return FileError(f"{str(path)!r} holds no {which} key that can be read; name the PEM file of an Ed25519 key")
