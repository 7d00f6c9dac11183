"""A small load: processes charge one ledger, one is killed, the server restarts. The large one is a benchmark."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp

ROOT = Path(__file__).parents[4]
EACH = Fraction(1, 100)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import ledger_load

    return ledger_load


def test_files_under_load(load, tmp_path):
    """Half of what is asked fits: not one charge more is on record, and none that was reported is missing."""
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=EACH * 20)
    made = load.run(
        str(path), tmp_path / "run", "small", n_charges=40, n_processes=4, limit=EACH * 20, each=EACH, n_killed=1
    )
    assert made.n_charged <= 20
    assert made.n_reported + made.n_unreported == made.n_charged
    assert made.n_killed <= 1


def test_servers_under_load(load, tmp_path, postgres):
    """Connections that the server ends in the middle cost nobody a charge, and no charge is made twice."""
    postgres.create(limit=EACH * 20)

    def end_connections():
        postgres.server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann' AND pid <> pg_backend_pid()"
        )

    made = load.run(
        *(postgres.address_of("ann"), tmp_path / "run", "small"),
        n_charges=40,
        n_processes=4,
        limit=EACH * 20,
        each=EACH,
        in_the_middle=end_connections,
    )
    assert made.n_charged == 20
    assert made.n_refused == 20


def test_a_lost_charge_would_be_noticed(load, tmp_path):
    """The comparison fails where a process reports what is not on record."""
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=1)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "0.txt").write_text("charged p0 0 0.1\n")
    with pytest.raises(SystemExit, match="acknowledged"):
        load._compared(str(path), tmp_path / "run", "x", Fraction(1), EACH, set(), 1.0, may_fail=False)
