"""A private PostgreSQL server for tests: on a Unix socket in a temporary folder, and gone with it.

Where `initdb` and `postgres` are not installed there is none, and its tests are skipped. PostgreSQL refuses to run as
root, so root runs it as another user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, or None where there is none."""
    found = shutil.which("postgres")
    candidates = [Path(found).parent] if found else []
    asked = shutil.which("pg_config")
    if asked:
        shown = subprocess.run([asked, "--bindir"], check=False, capture_output=True, text=True)
        candidates.append(Path(shown.stdout.strip()))
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if all((folder / name).exists() for name in ("initdb", "postgres", "pg_ctl")):
            return folder
    return None


def _other_user() -> str | None:
    """Whom root runs the server as; None where nobody is root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None


class Server:
    """A server that listens on a socket in its own folder, and on a port of this machine where asked."""

    def __init__(self, *, durable: bool = False) -> None:
        folder = programs()
        if folder is None:
            raise RuntimeError("PostgreSQL is not installed")
        self.programs, self.durable = folder, durable
        self.folder = Path(tempfile.mkdtemp(prefix="spinney-pg-", dir="/tmp"))  # sockets have short names
        self.user = _other_user()
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self.port = _free_port()
        data = self.folder / "data"
        self._run("initdb", "-D", str(data), "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, user=self.user, cwd=self.folder, timeout=60
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr or done.stdout}")

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
        if not self.durable:
            settings += " -c fsync=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-w", "-t", "50", "-o", settings, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def url(self, database: str = "postgres", user: str = "owner") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *, database: str = "postgres", user: str = "owner") -> list[Any]:
        import psycopg

        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        name = f"ledger_{time.monotonic_ns()}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
