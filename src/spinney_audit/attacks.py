"""Attacks on synthetic rows with anonymeter: do they reveal who is in the private table? FOR THE HOLDER ONLY.

Everything here is computed from private rows without noise, and none of it may be published.

The table is split at random into rows that are fitted and as many that are not (the control). Rows are drawn
from the release of the first half, and the same attacks are made against both halves: what succeeds against
people who were not in the fit has nothing to do with their being in it. Both halves have the same size, because
attacks that pick rows find more in a larger set, which reads as a leak where there is none. The fit spends
budget like any other: it is charged to an account where one is given, and its release is not handed out.

    singling out    guesses a condition that exactly one private row meets
    linkage         finds which two halves of a private row's columns belong together
    inference       finds the value of one column from all others
    membership      nearest synthetic row: do fitted rows lie nearer than control rows? Compared by rank, ours
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import InputError, MissingExtraError, ParameterError
from spinney.progress import progress, waiting
from spinney.schema.schema import Schema
from spinney.synthesizers.method import AUTOMATIC, choose, make
from spinney.synthesizers.paying import lost_with_errors
from spinney.synthesizers.validation import checked_ledger
from spinney_audit.game import quantile

if TYPE_CHECKING:
    import pyarrow as pa


Floats = NDArray[np.float64]

NOT_PRIVATE = "For the holder of the private table only: these figures are computed from it without noise."
_CONFIDENCE = 0.95
_N_ATTACKS = 5  # kinds of them, which share the error probability
_FEWEST = 50
_MOST_ATTACKS = 500
_MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Attack:
    """How often an attack succeeded against fitted rows and against control rows.

    `excess` is the difference of the two rates, and `excess_low` to `excess_high` its interval: above 0 as a whole, the
    attack learns something from a row's being in the fit. Intervals of all attacks hold together in about 95 % of runs.
    """

    name: str
    n_attacks: int
    rate: float
    control_rate: float
    excess: float
    excess_low: float
    excess_high: float

    @property
    def succeeds(self) -> bool:
        """Whether more succeeds against fitted rows than chance explains."""
        return self.excess_low > 0


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What `attack` found. Not private."""

    attacks: tuple[Attack, ...]
    n_rows: int  # in each half
    epsilon: str
    is_charged: bool = False  # whether an account of the table has the fit's charge

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "not_private": NOT_PRIVATE,
            "epsilon": self.epsilon,
            "charged_to_an_account": self.is_charged,
            "rows_in_each_half": self.n_rows,
            "confidence": _CONFIDENCE,
            "attacks": [{**asdict(one), "succeeds": one.succeeds} for one in self.attacks],
        }

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, f"{self.n_rows:,} rows were fitted at epsilon {self.epsilon}; as many were not."]
        charged = "The fit was charged to the account" if self.is_charged else "The fit was charged to no account"
        lines += [f"{charged}. Its release was thrown away: publish nothing of it, and not these figures.", ""]
        lines.append(f"{'attack':<28}{'attacks':>8}{'fitted':>9}{'control':>9}   difference, with its interval")
        for one in self.attacks:
            between = f"{one.excess:+.3f}  [{one.excess_low:+.3f}, {one.excess_high:+.3f}]"
            mark = "  SUCCEEDS" if one.succeeds else ""
            lines.append(f"{one.name:<28}{one.n_attacks:>8,}{one.rate:>9.3f}{one.control_rate:>9.3f}   {between}{mark}")
        lines += ["", "An attack that succeeds no better against fitted rows than against the control proves nothing."]
        return "\n".join(lines)


def attack(
    table: pa.Table,
    schema: Schema,
    *,
    control: pa.Table | None = None,
    epsilon: Any = 1,
    ledger: Any = None,
    anonymeter: str | None = None,
    n_attacks: int = _MOST_ATTACKS,
    seed: int | None = None,
) -> AttackResult:
    """Fit a random half of a private table, and attack rows drawn from that release. For its holder only.

    Args:
        table: the private table, in memory.
        schema: what its columns are.
        control: rows of other people from the same population; by default the other half of the table.
        epsilon: the budget of the fit.
        ledger: an account of the table, or its path, that the fit is charged to; by default that of this machine, if
            SPINNEY_LEDGER names one, and False for none.
        anonymeter: a Python that has anonymeter; by default this one, where it has it.
        n_attacks: how many attacks of each kind at most.
        seed: repeats how rows are split and attacked, not the noise of the fit.
    """
    python = _python(anonymeter)
    if n_attacks < 1:
        raise ParameterError(f"n_attacks={n_attacks} is not positive")
    if schema.person is not None:
        raise ParameterError(
            "the schema says whose rows they are, and attacks know rows only; give a schema without person="
        )
    rng = np.random.default_rng(seed)
    names = [name for name in schema._modelled if name in table.column_names]
    fitted, others = _halves(table, control, rng)
    model: Any = make(choose(schema, {}, method=AUTOMATIC).method, epsilon, {})
    model.fit(fitted, schema, ledger=ledger)
    with lost_with_errors(model, ledger):
        rows = model.sample(fitted.num_rows, frame="pyarrow", seed=rng).select(names)
        inside, outside = fitted.select(names), others.select(names)
        mixed = [names[place] for place in rng.permutation(len(names))]
        asked = {"names": mixed, "n_attacks": min(n_attacks, inside.num_rows), "seed": int(rng.integers(2**31))}
        with waiting("attacking rows"):
            found = _by_anonymeter(python, [inside, rows, outside], asked)
        found.append(_membership(inside, rows, outside))
    is_charged = checked_ledger(ledger) is not None
    return AttackResult(tuple(found), fitted.num_rows, str(epsilon), is_charged)


def _python(given: str | None) -> str:
    """A Python that has anonymeter: the one that was named, or this one."""
    if given is not None:
        return given
    if find_spec("anonymeter") is not None:
        return sys.executable
    raise MissingExtraError(
        "attacks need anonymeter, which wants an older numpy than Spinney does; make an environment of its own, "
        "python -m venv attacks && attacks/bin/pip install anonymeter, and name its Python: "
        "--anonymeter attacks/bin/python (anonymeter='attacks/bin/python')"
    )


def _halves(table: pa.Table, control: pa.Table | None, rng: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """Rows to fit and as many to compare with, at random."""
    if control is None:
        order = rng.permutation(table.num_rows)
        half = min(table.num_rows // 2, _MOST_ROWS)
        fitted, others = table.take(order[:half]), table.take(order[half : 2 * half])
    else:
        half = min(table.num_rows, control.num_rows, _MOST_ROWS)
        fitted = table.take(rng.permutation(table.num_rows)[:half])
        others = control.take(rng.permutation(control.num_rows)[:half])
    if half < _FEWEST:
        raise InputError(f"attacks need at least {_FEWEST} rows in each half; give a larger table")
    return fitted, others


def _by_anonymeter(python: str, tables: Sequence[pa.Table], asked: dict[str, Any]) -> list[Attack]:
    """Hand the tables to a process that has anonymeter, through a pipe: no private row is written to a file."""
    import pyarrow as pa

    parts = [(json.dumps(asked) + "\n").encode()]
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue().to_pybytes()
        parts += [len(content).to_bytes(8, "big"), content]
    script = Path(__file__).parent / "anonymeter_process.py"
    try:
        # The user names a Python of theirs, and a script of ours.
        done = subprocess.run([python, str(script)], input=b"".join(parts), capture_output=True, check=False)  # noqa: S603
    except OSError as err:
        raise ParameterError(f"anonymeter={python!r} cannot be run: {err.strerror}; name a Python") from err
    if done.returncode:
        # What it says may quote private values, so nothing of it is shown.
        raise MissingExtraError(
            f"the attacks failed in {python!r} (status {done.returncode}); see whether it has anonymeter 1.1: "
            f"{python} -c 'import anonymeter'"
        )
    return [_compared(one["name"], one["n"], one["rate"], one["control_rate"]) for one in json.loads(done.stdout)]


def _compared(name: str, n: int, rate: float, control_rate: float) -> Attack:
    """The difference of two rates of as many attacks, with Newcombe's interval of Wilson's two."""
    z = quantile(1 - (1 - _CONFIDENCE) / (2 * _N_ATTACKS))
    (low, high), (control_low, control_high) = (_wilson(share, n, z) for share in (rate, control_rate))
    excess = rate - control_rate
    return Attack(
        name,
        n,
        rate,
        control_rate,
        excess,
        excess - math.hypot(rate - low, control_high - control_rate),
        excess + math.hypot(high - rate, control_rate - control_low),
    )


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(max(share * (1 - share), 0) / n + z * z / (4 * n * n))
    return middle - reach, middle + reach


def _membership(inside: pa.Table, rows: pa.Table, outside: pa.Table) -> Attack:
    """Guess that a row was fitted if a synthetic one is nearer to it than to half of all rows: right or wrong."""
    scaled = _scaled([inside, rows, outside])
    distances = [_nearest(scaled[0], scaled[1]), _nearest(scaled[2], scaled[1])]
    middle = float(np.median(np.concatenate(distances)))
    # Ties count half, so that a table of few values is no membership.
    rate, control_rate = (float((part < middle).mean() + 0.5 * (part == middle).mean()) for part in distances)
    return _compared("membership", len(distances[0]), rate, control_rate)


def _scaled(tables: Sequence[pa.Table]) -> list[Floats]:
    """Columns as numbers: ordered ones by their place in the range, null outside of it; others by indicators."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Floats] = []
    for name in tables[0].column_names:
        columns = [table[name].combine_chunks() for table in tables]
        if all(pa.types.is_integer(one.type) or pa.types.is_floating(one.type) for one in columns):
            numbers = np.concatenate([np.asarray(one.cast(pa.float64()), dtype=np.float64) for one in columns])
            low, high = np.nanmin(numbers), np.nanmax(numbers)
            parts.append(np.nan_to_num((numbers - low) / ((high - low) or 1.0), nan=-1.0)[:, None])
            continue
        texts = pa.concat_arrays([pc.fill_null(one.cast(pa.string()), "") for one in columns])
        codes = np.asarray(texts.dictionary_encode().indices)
        parts.append(np.eye(int(codes.max()) + 1)[codes] / math.sqrt(2))
    everything = np.hstack(parts)
    ends = np.cumsum([0, *(table.num_rows for table in tables)])
    return [everything[low:high] for low, high in pairwise(ends.tolist())]


def _nearest(rows: Floats, synthetic: Floats) -> Floats:
    """Squared distance of every row to the nearest synthetic one."""
    squared = (synthetic**2).sum(axis=1)
    found = [
        (part**2).sum(axis=1) + (squared[None, :] - 2 * part @ synthetic.T).min(axis=1)
        for part in progress(np.array_split(rows, max(1, len(rows) // 256)), "comparing rows", unit="part")
    ]
    return np.maximum(np.round(np.concatenate(found), 9), 0.0)
