"""Attacks on synthetic rows, with anonymeter: whether somebody who holds the rows learns who is in the private table.

FOR THE HOLDER ONLY: everything here is computed from private rows without noise, and none of it may be published.

The table is split at random into rows that are fitted and as many that are not (the control). Rows are drawn from the
release of the first half, and the same attacks are made against both halves: what succeeds against people who were not
in the fit has nothing to do with their being in it. Both halves have the same size, because attacks that pick rows find
more in a larger set, which reads as a leak where there is none. The fit spends budget like any other: it is charged to
an account where one is given, and its release is not handed out.

    singling out    guesses a condition that exactly one private row meets
    linkage         tells which two halves of a private row's columns belong together
    inference       tells the value of one column from all others
    membership      nearest synthetic row: do fitted rows lie nearer than control rows? Compared by rank, ours
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.bounds import quantile
from spinney.errors import InputError, MissingExtraError, ParameterError
from spinney.extras import load_optional
from spinney.progress import progress
from spinney.schema.table import Schema
from spinney.synthesizers.method import AUTOMATIC, choose, make

if TYPE_CHECKING:
    import pyarrow as pa

NOT_PRIVATE = "For the holder of the private table only: these figures are computed from it without noise."
_CONFIDENCE = 0.95
_FEWEST = 50
_MOST_ATTACKS = 500
_MOST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Attack:
    """How often an attack succeeded against fitted rows and against control rows, with intervals of 95 %.

    `excess` is the difference of the two rates, and `excess_low` to `excess_high` its interval: above 0 as a whole, the
    attack learns something from a row's being in the fit.
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

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "not_private": NOT_PRIVATE,
            "epsilon": self.epsilon,
            "rows_in_each_half": self.n_rows,
            "confidence": _CONFIDENCE,
            "attacks": [{**asdict(one), "succeeds": one.succeeds} for one in self.attacks],
        }

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, f"{self.n_rows:,} rows were fitted at epsilon {self.epsilon}; as many were not.", ""]
        lines.append(f"{'attack':<28}{'attacks':>8}{'fitted':>9}{'control':>9}   difference, interval of 95 %")
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
    n_attacks: int = _MOST_ATTACKS,
    seed: int | None = None,
) -> AttackResult:
    """Fit a random half of a private table, and attack rows drawn from that release. For its holder only.

    Args:
        table: the private table, in memory.
        schema: what its columns are.
        control: rows of other people from the same population; by default the other half of the table.
        epsilon: the budget of the fit.
        ledger: an account of the table, or its path, that the fit is charged to.
        n_attacks: how many attacks of each kind at most.
        seed: repeats how rows are split and attacked, not the noise of the fit.
    """
    evaluators = _evaluators()
    if n_attacks < 1:
        raise ParameterError(f"n_attacks={n_attacks} is not positive")
    if schema.person is not None:
        raise ParameterError(
            "the schema says whose rows they are, and attacks know rows only; give a schema without person="
        )
    rng = np.random.default_rng(seed)
    names = [name for name in schema.modelled if name in table.column_names]
    fitted, others = _halves(table, control, rng)
    model: Any = make(choose(schema, {}, method=AUTOMATIC).method, epsilon, {})
    model.fit(fitted, schema, ledger=ledger)
    rows = model.sample(fitted.num_rows, frame="pandas", seed=rng)[names]
    inside, outside = (half.select(names).to_pandas() for half in (fitted, others))
    found: list[Attack] = []
    for name, prepare in progress(_attacks(evaluators, names, rng), "attacking rows", unit="attack"):
        found.append(_attacked(name, prepare, inside, rows, outside, min(n_attacks, len(inside))))
    found.append(_membership(inside, rows, outside))
    return AttackResult(tuple(found), fitted.num_rows, str(epsilon))


def _evaluators() -> Any:
    try:
        return load_optional("anonymeter.evaluators", "spinney audit --attacks")
    except MissingExtraError:
        raise
    except Exception as err:  # versions that do not fit together fail on import in many ways
        raise MissingExtraError(
            f"anonymeter is installed but cannot be imported here ({type(err).__name__}); install Spinney with its "
            "extra 'attacks' in an environment of its own"
        ) from err


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


def _attacks(evaluators: Any, names: Sequence[str], rng: np.random.Generator) -> list[tuple[str, Any]]:
    """The attacks of anonymeter, as functions of the three tables and a number."""
    half = len(names) // 2
    mixed = [names[place] for place in rng.permutation(len(names))]

    def singling_out(inside: Any, rows: Any, outside: Any, n: int) -> Any:
        return evaluators.SinglingOutEvaluator(ori=inside, syn=rows, control=outside, n_attacks=n, n_cols=3)

    def linkage(inside: Any, rows: Any, outside: Any, n: int) -> Any:
        columns = (mixed[:half], mixed[half:])
        return evaluators.LinkabilityEvaluator(
            ori=inside, syn=rows, control=outside, n_attacks=n, aux_cols=columns, n_neighbors=5
        )

    def inference(secret: str) -> Any:
        known = [name for name in names if name != secret]
        return lambda inside, rows, outside, n: evaluators.InferenceEvaluator(
            ori=inside, syn=rows, control=outside, aux_cols=known, secret=secret, n_attacks=n
        )

    found: list[tuple[str, Any]] = [("singling out", singling_out)]
    if len(names) > 1:
        found.append(("linkage", linkage))
        found += [(f"inference of {name}", inference(name)) for name in mixed[:2]]
    return found


def _attacked(name: str, prepare: Any, inside: Any, rows: Any, outside: Any, n: int) -> Attack:
    evaluator = prepare(inside, rows, outside, n)
    evaluator.evaluate(mode="multivariate") if name == "singling out" else evaluator.evaluate(n_jobs=1)
    found = evaluator.results(confidence_level=_CONFIDENCE)
    rate, control_rate = float(found.attack_rate.value), float(found.control_rate.value)
    n_made = int(getattr(found, "n_attacks", n))
    return _compared(name, n_made, rate, control_rate)


def _compared(name: str, n: int, rate: float, control_rate: float) -> Attack:
    """The difference of two rates of as many attacks, with Newcombe's interval of Wilson's two."""
    z = quantile((1 + _CONFIDENCE) / 2)
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


def _membership(inside: Any, rows: Any, outside: Any) -> Attack:
    """Guess that a row was fitted if a synthetic one is nearer to it than to half of all rows: right or wrong."""
    scaled = _scaled([inside, rows, outside])
    distances = [_nearest(scaled[0], scaled[1]), _nearest(scaled[2], scaled[1])]
    middle = float(np.median(np.concatenate(distances)))
    # Ties count half, so that a table of few values is no membership.
    rate, control_rate = (float((part < middle).mean() + 0.5 * (part == middle).mean()) for part in distances)
    return _compared("membership", len(distances[0]), rate, control_rate)


def _scaled(frames: Sequence[Any]) -> list[NDArray[np.float64]]:
    """Columns as numbers: ordered ones by their place in the range, others by indicators."""
    pandas = load_optional("pandas", "spinney audit --attacks")
    whole = pandas.concat(frames, keys=range(len(frames)))
    parts = []
    for name in whole.columns:
        column = whole[name]
        if pandas.api.types.is_numeric_dtype(column) and not pandas.api.types.is_bool_dtype(column):
            numbers = column.astype("float64")
            reach = numbers.max() - numbers.min()
            parts.append(((numbers - numbers.min()) / (reach or 1.0)).fillna(-1.0).to_numpy()[:, None])
        else:
            codes = pandas.get_dummies(column.astype(str)).to_numpy(dtype=np.float64)
            parts.append(codes / math.sqrt(2))
    everything = np.hstack(parts)
    ends = np.cumsum([0, *(len(frame) for frame in frames)])
    return [everything[low:high] for low, high in pairwise(ends)]


def _nearest(rows: NDArray[np.float64], synthetic: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distance of every row to the nearest synthetic one."""
    squared = (synthetic**2).sum(axis=1)
    found = [
        (part**2).sum(axis=1) + (squared[None, :] - 2 * part @ synthetic.T).min(axis=1)
        for part in np.array_split(rows, max(1, len(rows) // 256))
    ]
    return np.maximum(np.round(np.concatenate(found), 9), 0.0)
