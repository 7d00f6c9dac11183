"""The credit-card fraud table: where it comes from, what is public about it, and the paper's undersampling.

284,807 card payments of two days in 2013, 492 of them fraudulent: 28 principal components V1..V28, the amount and the
class. The first column, Time, is left out, as in the paper. Of the 284,315 honest payments only 0.5 % are kept, before
anything else happens; `undersampled` does that in two ways, and says what each is worth as a promise.

Arrays hold Class first: trees cut columns in their order, and the class is what the classifiers want to know. With the
class last, Spinney's tree rarely comes to cut it, and in a few trials its rows were worth no more than guessing.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Column, Real
from spinney.errors import FileError, InputError, ParameterError
from spinney.machine import load_optional
from spinney.privacy.entropy import Entropy
from spinney.schema.schema import Schema
from spinney_paper.experiments.framework import FRAUD_FILES, Inputs

Rows = NDArray[np.float64]  # (n, 30): Class, V1..V28, Amount
Place = Literal["outside", "inside"]

TARGET = "Class"
COMPONENTS = tuple(f"V{i}" for i in range(1, 29))
COLUMNS = (TARGET, *COMPONENTS, "Amount")

# Components of 28 standardised inputs share a variance of 28, so none deviates by more than sqrt(28); five times that.
LARGEST_COMPONENT = 5 * math.sqrt(28)
LARGEST_AMOUNT = 30_000

_WORD = 2.0**32


def public_schema() -> Schema:
    """Bounds by rule, without a look at the table: components within five times sqrt(28), amounts up to 30,000.

    The rule supposes that the components were made from standardised inputs, as is usual. Should that be wrong, some
    values are moved to the bounds; the promise does not depend on it. The area does: in a few trials at epsilon = 10,
    bounds of ±100 for the components gave Spinney's tree about 0.60 where these give 0.75.
    """
    components: dict[str, Column] = {
        name: Real(-round(LARGEST_COMPONENT, 1), round(LARGEST_COMPONENT, 1)) for name in COMPONENTS
    }
    return Schema({TARGET: Boolean(), **components, "Amount": Real(0, LARGEST_AMOUNT)})


def data_box_schema() -> Schema:
    """Bounds read off the data, as the paper's Algorithm 2 does. NOT PRIVATE, and branded as such.

    The class is a number between 0 and 1, because the paper's cube has an edge of the same length for every column.
    """
    return Schema(
        {TARGET: Real(0, 1), **{name: Real(bounds="from-data-not-private") for name in (*COMPONENTS, "Amount")}}
    )


# ------------------------------------------------------------------------------------------------ where rows come from


def fraud_rows(source: str, inputs: Inputs) -> Rows:
    """The rows of `source`, read once per run: "creditcard", the real table, or "made-up", a stand-in for it."""
    if source == "made-up":
        return inputs.keep("fraud rows, made up", made_up_rows)
    if source != "creditcard":
        raise ParameterError(f"source={source!r} is not 'creditcard' or 'made-up'")
    return inputs.keep("fraud rows", lambda: _real_rows(inputs))


def made_up_rows(n_honest: int = 20_000, n_fraud: int = 160, seed: int = 0) -> Rows:
    """A MADE-UP stand-in: components of falling spread, and frauds that lie apart in a few of them."""
    rng = np.random.default_rng(seed)
    spread = 2 / np.sqrt(np.arange(1, 29))
    honest = rng.standard_t(5, size=(n_honest, 28)) * spread
    fraud = rng.standard_t(5, size=(n_fraud, 28)) * 2 * spread
    fraud[:, [2, 9, 11, 13, 16]] -= 8
    fraud[:, [1, 3, 10]] += 6
    is_fraud = np.repeat([0.0, 1.0], [n_honest, n_fraud])
    amount = np.round(np.minimum(rng.lognormal(3, 1.5, size=n_honest + n_fraud), LARGEST_AMOUNT), 2)
    rows: Rows = np.column_stack([is_fraud, np.concatenate([honest, fraud]), amount])
    return rows


def _real_rows(inputs: Inputs) -> Rows:
    if inputs.folder is not None:
        try:
            return read_rows(inputs.file(*FRAUD_FILES))
        except FileError as err:
            raise FileError(f"{err}. {_WHERE_TO_GET_IT}") from err
    return _downloaded_rows()


_WHERE_TO_GET_IT = (
    "The credit-card table is public: OpenML has it under the name creditcard, Kaggle under mlg-ulb/creditcardfraud. "
    f"Put {' or '.join(FRAUD_FILES)}, with columns V1 to V28, Amount and Class, into a folder and name it by --data"
)


def read_rows(path: Path) -> Rows:
    """The rows of a .parquet or .csv file; what else it holds, such as Time, is left out."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    except (OSError, pa.ArrowException) as err:
        raise FileError(f"cannot read {str(path)!r} as a table") from err
    return _checked_rows({name: table[name].to_numpy() for name in COLUMNS if name in table.column_names}, str(path))


def _downloaded_rows() -> Rows:
    """The table from OpenML, kept by scikit-learn in its own folder for the next time."""
    what = "downloading the credit-card table"
    fetch_openml = load_optional("sklearn.datasets", what, extra="paper").fetch_openml
    parser = "auto" if find_spec("pandas") is not None else "liac-arff"
    try:
        bunch = fetch_openml("creditcard", version=1, as_frame=False, parser=parser)
    except Exception as err:  # no network, a proxy, a changed service: all mean the same here
        raise FileError(f"the credit-card table could not be downloaded. {_WHERE_TO_GET_IT}") from err
    columns = {name: bunch.data[:, i] for i, name in enumerate(bunch.feature_names)}
    return _checked_rows(columns | {TARGET: bunch.target}, "the table from OpenML")


def _checked_rows(columns: dict[str, Any], origin: str) -> Rows:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise InputError(f"{origin} has no column {missing[0]!r}; the credit-card table has V1 to V28, Amount, Class")
    try:
        rows: Rows = np.column_stack([np.asarray(columns[name]).astype(np.float64) for name in COLUMNS])
    except ValueError:
        raise InputError(f"{origin} holds a value that is not a number; take the table as published") from None
    if not np.isfinite(rows).all():
        raise InputError(f"{origin} holds a missing value; take the table as published")
    if set(np.unique(rows[:, 0])) != {0.0, 1.0}:
        raise InputError(f"{origin}: {TARGET} does not hold both 0 and 1 and nothing else; take the table as published")
    return rows


# ------------------------------------------------------------------------------------------------------- undersampling


def undersampled(rows: Rows, place: Place, *, rate: float, train_share: float, entropy: Entropy) -> tuple[Rows, Rows]:
    """Rows to synthesize from and rows to test on, the honest ones thinned to `rate`.

    "outside", as in the paper and in DP-MERF's code: a random subset of the honest rows, of fixed size; then a random
    split. The accounting knows nothing of it: a promise holds for the kept table, its numbers of rows taken as public,
    and not for the whole one. (Turn an honest payment into a fraud and the kept table has a row more.)

    "inside": every row has coins of its own, tossed whatever it holds. An honest row is kept if its first coin says so,
    a fraud always; the second coin says whether a kept row trains or tests. Fix all coins and replace one row of the
    whole table: the training table may lose that row and may gain one, and every other row stays where it is. Hence
    two steps of unit add-remove, and a release that is (epsilon/2)-DP there satisfies

        P(release(T) in S) <= exp(epsilon/2) P(release(T') in S) <= exp(epsilon) P(release(T'') in S)

    for the training tables T and T'' of neighbours and T' between them. The same for every outcome of the coins, so
    also on average over them: epsilon-DP for the whole table, unit replace-one. With
    delta, two steps of (epsilon/2, delta') add up to (epsilon, (1 + exp(epsilon/2)) delta'). The coins are given no
    credit: frauds are always kept, so thinning hides none of them. Rows that test are never released.
    """
    if place == "inside":
        return _undersampled_inside(rows, rate, train_share, entropy)
    if place != "outside":
        raise ParameterError(f"place={place!r} is not 'outside' or 'inside'")
    honest, fraud = np.flatnonzero(rows[:, 0] == 0), np.flatnonzero(rows[:, 0] == 1)
    chosen = honest[_shuffled(len(honest), entropy)[: int(rate * len(honest))]]
    kept = np.concatenate([chosen, fraud])
    kept = kept[_shuffled(len(kept), entropy)]
    n_train = int(train_share * len(kept))
    return rows[kept[:n_train]], rows[kept[n_train:]]


def _undersampled_inside(rows: Rows, rate: float, train_share: float, entropy: Entropy) -> tuple[Rows, Rows]:
    is_chosen, trains = _coins(len(rows), rate, entropy), _coins(len(rows), train_share, entropy)
    is_kept = is_chosen | (rows[:, 0] == 1)
    return rows[is_kept & trains], rows[is_kept & ~trains]


def _coins(n: int, chance: float, entropy: Entropy) -> NDArray[np.bool_]:
    """One coin per row; the chance is rounded to a multiple of 2^-32."""
    return np.asarray(entropy.words(n) < round(chance * _WORD))


def _shuffled(n: int, entropy: Entropy) -> NDArray[np.int64]:
    """0..n-1 in random order."""
    return np.random.Generator(np.random.PCG64([int(word) for word in entropy.words(4)])).permutation(n)
