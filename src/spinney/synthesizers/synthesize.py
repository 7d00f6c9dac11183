"""`synthesize`: a private table in, a synthetic one out, in one call."""

from __future__ import annotations

from typing import Any

from spinney.errors import ParameterError
from spinney.release.model import checked_number_of_rows
from spinney.release.options import one_number_of_rows
from spinney.release.seeds import checked_seed
from spinney.schema.people import PeopleShape, Tables
from spinney.schema.table import SchemaLike, as_schema
from spinney.synthesizers.charged import lost_with_errors
from spinney.synthesizers.method import AUTOMATIC, choose, make, whose_rows
from spinney.synthesizers.validation import LedgerLike


def synthesize(
    frame: Any,
    schema: SchemaLike | Tables,
    *,
    epsilon: Any = 1,
    n_rows: int | None = None,
    persons: int | None = None,
    seed: int | None = None,
    ledger: LedgerLike = None,
    method: str = AUTOMATIC,
    engine: str | None = None,
    **options: Any,
) -> Any:
    """Synthetic rows for a private table, by the synthesizer that suits its schema.

    Up to eight columns that are all measurements (coordinates, scores, small whole numbers), times or booleans get a
    `KDTreeSynthesizer`, whose promise is pure epsilon. Amounts, dates, categories, identifiers, rules, a target or more
    columns get a `ForestSynthesizer`, whose promise is (epsilon, delta), with a delta of at most 1e-6 and a tenth of
    one over the number of rows; `delta=0` makes that pure too. A schema that says whose rows they are (`person=`), and
    `sp.Tables`, get a `LinkedSynthesizer`, whose promise is for a person with all their rows. Each call spends anew:
    keep a fitted model to sample from it often.

    >>> import numpy as np, spinney as sp
    >>> schema = sp.Schema({"age": sp.Integer(0, 99), "kind": sp.Category([1, 2, 3])})
    >>> table = np.random.default_rng(0).integers(1, 4, (1000, 2))
    >>> sp.synthesize(table, schema, epsilon="1", target="kind", n_rows=10).shape
    (10, 2)

    Args:
        frame: a pandas, polars or pyarrow table, a numeric numpy array with the schema's columns in order, the path of
            Parquet or CSV files or a list of paths, a pyarrow dataset or RecordBatchReader, or a table of another
            engine; see `fit`. With `sp.Tables`, a dictionary of such tables by name.
        schema: what is public about the table: a `Schema`, the path of a schema file, or a dictionary of columns; of
            linked tables, `sp.Tables`.
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            `num_rows` means the same. Rows of persons come with their persons: give `persons` there.
        persons: how many persons, each with all their rows, where the schema says whose rows they are; by default as
            many as there were where that is public, else a noisy number.
        seed: repeats the rows of one and the same release; every call makes a new one.
        ledger: an account shared by several releases of the same people; see `fit`.
        method: "tree", "forest" or "grid", instead of what the schema suggests; "linked" is the one for persons.
        engine: what reads the table, where there is a choice; see `fit`.
        options: parameters of the synthesizer. Those that only the forest knows (target, delta, quality, workload,
            analyses, prior) or only the tree (rule, moments, threshold, ...) choose it. rule="paper" makes the tree a
            `PaperTreeSynthesizer`, whose h, h', s1, s2, tau and t are fixed_depth, max_depth, largest_edge,
            smallest_edge, cutoff and threshold here.
    """
    # Nothing is spent on a call that could not draw its rows.
    n_rows = one_number_of_rows(n_rows, options)
    stated = schema if isinstance(schema, Tables) else as_schema(schema)
    of_persons = whose_rows(stated)
    number = n_rows if of_persons is None else persons
    if of_persons is not None and n_rows is not None:
        raise ParameterError(f"n_rows: {of_persons}, and persons are drawn with all their rows; say persons=...")
    if of_persons is None and persons is not None:
        raise ParameterError(
            "persons: the schema does not say whose rows they are; say n_rows=..., or state the column of persons, "
            "sp.Schema({...}, person='customer', most_rows=200)"
        )
    if number is not None:
        checked_number_of_rows(number, n_columns=_n_columns(stated))
    checked_seed(seed)
    choice = choose(stated, options, method=method)
    model: Any = make(choice.method, epsilon, options)  # which takes tables where tables were given
    model.fit(frame, stated, ledger=ledger, engine=engine)
    with lost_with_errors(model, ledger):
        return model.sample(number, seed=seed)


def _n_columns(stated: Any) -> int:
    """How many columns synthetic tables have."""
    if isinstance(stated, Tables) or stated.person is not None:
        return sum(len(schema) for schema in PeopleShape.of(stated).without_ignored().tables.values())
    return len(stated.without_ignored())
