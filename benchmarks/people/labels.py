"""Predicting a person's label from aggregates of the rows: learnt from synthetic persons, tested on real. NOT PRIVATE.

Of numbers the mean, the standard deviation and the share of nulls; of categories the share of every value; and the
number of rows. Other columns of persons are left out. Gradient boosting of scikit-learn with its defaults, which takes
missing aggregates (of persons without rows) as they are.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.people.tables import KEY, People, PeopleTable
from spinney.columns import Boolean, Category


def area(train: People, test: People, table: PeopleTable, *, seed: int = 0) -> float:
    """Area under the ROC on test persons; 0.5 where one class alone can be learnt."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    known, labels = aggregates(train, table)
    if len(np.unique(labels)) < 2:
        return 0.5
    is_there = np.isfinite(known).any(axis=0)  # one row a person has no standard deviation
    model = HistGradientBoostingClassifier(random_state=seed).fit(known[:, is_there], labels)
    asked, truths = aggregates(test, table)
    return float(roc_auc_score(truths, model.predict_proba(asked[:, is_there])[:, 1]))


def aggregates(people: People, table: PeopleTable) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A line a person, and the labels."""
    assert people.persons is not None
    assert table.target is not None
    wanted = [pl.len().cast(pl.Float64).alias("#")]
    for name, column in table.rows_schema.items():
        held = pl.col(name)
        if isinstance(column, (Boolean, Category)):
            wanted += [(held.cast(pl.String) == str(value)).mean().alias(f"{name}={value}") for value in column.listed]
        else:
            asked = {"mean": held.mean(), "std": held.std(), "null": held.is_null().mean()}
            wanted += [found.cast(pl.Float64).alias(f"{name} {what}") for what, found in asked.items()]
    known = people.rows.group_by(KEY, maintain_order=True).agg(wanted)
    joined = people.persons.select(KEY, table.target).join(known, on=KEY, how="left", maintain_order="left")
    joined = joined.with_columns(pl.col("#").fill_null(0.0))
    label = joined[table.target].cast(pl.String) == str(table.person_columns[table.target].listed[-1])
    return joined.drop(KEY, table.target).fill_null(float("nan")).to_numpy(), label.to_numpy()
