"""Ledgers under load and faults: many processes charge one, some are killed, the server restarts, the disk fills.

python -m benchmarks.ledger_load --folder FOLDER [--postgres URL | auto | none] [--charges 1000] [--processes 50]

Every process reports a charge after it returned, and only then. Afterwards the ledger is read from its first entry to
its last and compared with all reports: no more may be spent than the limit, no reported charge may be missing, a charge
that nobody reported may be there only where its process was killed or its connection was lost, and everybody has to
come to an end. Fails where one of that does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import spinney as sp
from spinney.privacy.accounts.verifying import verify_ledger
from spinney.progress import progress

_WORKER = """
import sys, time
from fractions import Fraction
import spinney as sp
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
place, report, name, n, each = sys.argv[1:]
while True:
    try:
        ledger = sp.Ledger.open(place)
        break
    except sp.SpinneyError as err:
        if "cannot be reached" not in str(err):
            raise
        time.sleep(0.1)
with open(report, "a") as file:
    for number in range(int(n)):
        started = time.perf_counter()
        try:
            ledger.charge(DiscreteLaplaceCounts(Fraction(each), 2, f"{name} {number}"))
            said = "charged"
        except sp.SpinneyError as err:
            said = "refused" if "does not fit" in str(err) else "failed"
            if said == "failed":
                print(f"{name} {number}: {err}", file=sys.stderr, flush=True)
        file.write(f"{said} {name} {number} {time.perf_counter() - started:.6f}\\n")
        file.flush()
"""


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    what: str
    n_charged: int  # on record
    n_reported: int
    n_refused: int
    n_failed: int
    n_killed: int
    n_unreported: int  # on record, of processes that did not live to tell
    seconds: float
    slowest: float  # of a reported charge

    def __str__(self) -> str:
        return (
            f"{self.what:<44} {self.n_charged:>5} on record ({self.n_reported} reported, {self.n_unreported} of killed "
            f"processes), {self.n_refused} refused, {self.n_failed} failed, {self.n_killed} killed; "
            f"{self.seconds:.1f} s, {self.n_charged / self.seconds:.0f} a second, slowest {self.slowest:.2f} s"
        )


def run(
    place: str,
    folder: Path,
    what: str,
    *,
    n_charges: int,
    n_processes: int,
    limit: Fraction,
    each: Fraction,
    n_killed: int = 0,
    in_the_middle: object = None,
    timeout: float = 300,
    may_fail: bool = False,
) -> Outcome:
    """Charge one account from many processes and compare what they report with what is on record."""
    folder.mkdir(parents=True, exist_ok=True)
    per_process = n_charges // n_processes
    started = time.perf_counter()
    workers = []
    for number in range(n_processes):
        report = folder / f"{number}.txt"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-c", _WORKER, place, str(report), f"p{number}", str(per_process), str(each)]
        log = (folder / f"{number}.log").open("wb")
        workers.append(subprocess.Popen(command, stderr=log))
        log.close()
    rng = random.Random(0)
    victims = rng.sample(range(n_processes), n_killed)
    _wait_for_reports(folder, n_charges // 10, workers, timeout)
    for victim in victims:
        time.sleep(rng.random() * 0.1)
        if workers[victim].poll() is None:
            os.kill(workers[victim].pid, signal.SIGKILL)
    if callable(in_the_middle):
        in_the_middle()
    deadline = time.monotonic() + timeout
    for worker in workers:
        try:
            worker.wait(max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            for each_worker in workers:
                each_worker.kill()
            raise SystemExit(f"{what}: a process did not come to an end: a deadlock") from None
    seconds = time.perf_counter() - started
    killed = {f"p{number}" for number, worker in enumerate(workers) if worker.returncode == -signal.SIGKILL}
    crashed = [number for number, worker in enumerate(workers) if worker.returncode not in (0, -signal.SIGKILL)]
    if crashed:
        raise SystemExit(f"{what}: process {crashed[0]} crashed: {(folder / f'{crashed[0]}.log').read_text()[-500:]}")
    return _compared(place, folder, what, limit, each, killed, seconds, may_fail=may_fail)


def _wait_for_reports(folder: Path, n_wanted: int, workers: list[subprocess.Popen[bytes]], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and any(worker.poll() is None for worker in workers):
        if sum(path.read_bytes().count(b"\n") for path in folder.glob("*.txt")) >= n_wanted:
            return
        time.sleep(0.05)


def _compared(
    place: str,
    folder: Path,
    what: str,
    limit: Fraction,
    each: Fraction,
    killed: set[str],
    seconds: float,
    *,
    may_fail: bool,
) -> Outcome:
    reports = [line.split() for path in folder.glob("*.txt") for line in path.read_text().splitlines()]
    reports = [line for line in reports if len(line) == 4]
    said = {(line[1], line[2]): line[0] for line in reports}
    ledger = sp.Ledger.open(place)
    recorded = [tuple(event.note.split()) for event in ledger.events]
    charged = {key for key, word in said.items() if word == "charged"}
    if ledger.spent > limit or ledger.spent != each * len(recorded):
        raise SystemExit(f"{what}: {ledger.spent} is spent of {limit}")
    if len(set(recorded)) != len(recorded):
        raise SystemExit(f"{what}: a charge is on record twice")
    if missing := charged - set(recorded):
        raise SystemExit(
            f"{what}: {len(missing)} charges were acknowledged and are not on record, such as {min(missing)}"
        )
    unreported = set(recorded) - charged
    if strange := {key for key in unreported if key[0] not in killed and said.get(key) != "failed"}:
        raise SystemExit(f"{what}: {len(strange)} charges are on record that nobody made, such as {min(strange)}")
    failed = [key for key, word in said.items() if word == "failed"]
    if failed and not may_fail:
        logs = "".join(path.read_text() for path in sorted(folder.glob("*.log")))
        raise SystemExit(f"{what}: {len(failed)} charges failed: {logs[:500]}")
    verify_ledger(place, head=ledger.head)
    refused = sum(word == "refused" for word in said.values())
    slowest = max((float(line[3]) for line in reports if line[0] == "charged"), default=0.0)
    return Outcome(
        what, len(recorded), len(charged), refused, len(failed), len(killed), len(unreported), seconds, slowest
    )


# --------------------------------------------------------------------------------------------------------------- runs


def on_sqlite(folder: Path, n_charges: int, n_processes: int) -> Iterator[Outcome]:
    """Room for all, room for half, killed processes, and a disk that fills."""
    each = Fraction(1, 3000)
    for name, limit, n_killed in (
        ("sqlite", each * n_charges, 0),
        ("sqlite, half the limit, a fifth killed", each * (n_charges // 2), n_processes // 5),
    ):
        path = folder / f"{n_killed}.ledger"
        path.unlink(missing_ok=True)
        sp.Ledger.create(path, limit=limit)
        yield run(
            str(path), folder / f"sqlite-{n_killed}", name,
            n_charges=n_charges, n_processes=n_processes, limit=limit, each=each, n_killed=n_killed,
        )  # fmt: skip
    yield on_a_full_disk(folder, n_charges // 4, max(n_processes // 5, 2))


def on_a_full_disk(folder: Path, n_charges: int, n_processes: int) -> Outcome:
    """A small file system in memory where root may mount one, and limits of file sizes elsewhere."""
    disk, each = folder / "disk", Fraction(1, 3000)
    disk.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    try:
        if mounted.returncode == 0:
            path = disk / "full.ledger"
            sp.Ledger.create(path, limit=each * n_charges)
            return run(
                str(path), folder / "full", "sqlite, a disk of 64 kB",
                n_charges=n_charges, n_processes=n_processes, limit=each * n_charges, each=each, may_fail=True,
            )  # fmt: skip
        path = folder / "full.ledger"
        path.unlink(missing_ok=True)
        sp.Ledger.create(path, limit=each * n_charges)
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
        try:
            return run(
                str(path), folder / "full", "sqlite, files of 64 kB at most",
                n_charges=n_charges, n_processes=n_processes, limit=each * n_charges, each=each, may_fail=True,
            )  # fmt: skip
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(disk)], check=False)


def on_postgres(folder: Path, n_charges: int, n_processes: int, address: str) -> Iterator[Outcome]:
    """Room for all; half the room with a fifth killed; and a server that restarts in the middle, where it is ours."""
    if address != "auto":
        each = Fraction(1, 3000)
        limit = each * (n_charges // 2)
        sp.Ledger.create(address, limit=limit)
        yield run(
            address,
            folder / "postgres",
            "postgres, half the limit, a fifth killed",
            n_charges=n_charges,
            n_processes=n_processes,
            limit=limit,
            each=each,
            n_killed=n_processes // 5,
        )
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.postgres import Server

    each = Fraction(1, 3000)
    with Server(durable=True) as server:

        def restart() -> None:
            server.stop("fast")
            time.sleep(0.5)
            server.start()

        def crash() -> None:
            server.stop("immediate")
            server.start()

        for number, (name, limit, n_killed, middle) in enumerate(
            (
                ("postgres", each * n_charges, 0, None),
                ("postgres, half the limit, a fifth killed", each * (n_charges // 2), n_processes // 5, None),
                ("postgres, restarted in the middle", each * n_charges, n_processes // 5, restart),
                ("postgres, crashed in the middle", each * n_charges, 0, crash),
            )
        ):
            address = server.url(server.new_database())
            sp.Ledger.create(address, limit=limit)
            yield run(
                address, folder / f"postgres-{number}", name,
                n_charges=n_charges, n_processes=n_processes, limit=limit, each=each, n_killed=n_killed,
                in_the_middle=middle,
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where ledgers and reports are kept")
    parser.add_argument(
        "--postgres", default="auto", help="a database without a ledger, auto for a private server, none"
    )
    parser.add_argument("--charges", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=50)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kinds: list[Callable[[], Iterator[Outcome]]] = [lambda: on_sqlite(given.folder, given.charges, given.processes)]
    if given.postgres != "none":
        kinds.append(lambda: on_postgres(given.folder, given.charges, given.processes, given.postgres))
    for kind in progress(kinds, "charging ledgers", unit="kind"):
        for outcome in kind():
            print(outcome, flush=True)
    print("no limit was passed, no acknowledged charge was lost, every process came to an end")


if __name__ == "__main__":
    main()
