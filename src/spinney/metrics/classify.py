"""Train on synthetic rows, test on real ones: the paper's twelve classifiers and the area under their ROC. NOT PRIVATE.

What a table is worth to someone who wants to predict one of its columns. The paper names the classifiers and follows
the protocol of DP-MERF's published code: raw columns, and the area under the curve of predicted labels. The default
here ranks rows by predicted probabilities or margins instead, on columns that are centred and scaled by the synthetic
rows' means and standard deviations. Categories are one column per value. Needs scikit-learn and xgboost:
spinney[classify].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Integer, whole_range
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.machine import load_optional
from spinney.metrics.reading import Floats
from spinney.progress import progress
from spinney.schema.schema import Schema, SchemaLike, as_schema
from spinney.tables.frames import Table, open_table
from spinney.text import did_you_mean

Truths = NDArray[np.bool_]  # (n,)

# Name in the paper's table -> module, class, options beyond the defaults. `random_state` is given to all that take it.
_SETTINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Logistic Regression": ("sklearn.linear_model", "LogisticRegression", {"max_iter": 1000}),
    "Gaussian Naive Bayes": ("sklearn.naive_bayes", "GaussianNB", {}),
    "Bernoulli Naive Bayes": ("sklearn.naive_bayes", "BernoulliNB", {}),
    "Linear SVM": ("sklearn.svm", "LinearSVC", {}),
    "Decision Tree": ("sklearn.tree", "DecisionTreeClassifier", {}),
    "LDA": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis", {}),
    "Ada Boost": ("sklearn.ensemble", "AdaBoostClassifier", {}),
    "Bagging": ("sklearn.ensemble", "BaggingClassifier", {}),
    "Random Forest": ("sklearn.ensemble", "RandomForestClassifier", {}),
    "GBM": ("sklearn.ensemble", "GradientBoostingClassifier", {}),
    "Multi-layer perceptron": ("sklearn.neural_network", "MLPClassifier", {}),
    "XGBoost": ("xgboost", "XGBClassifier", {}),
}

CLASSIFIERS = tuple(_SETTINGS)
"""The names of the paper's twelve classifiers."""

PROTOCOLS = ("ranking", "dp-merf")

# What DP-MERF's published code sets otherwise.
_DP_MERF_OPTIONS: dict[str, dict[str, Any]] = {
    "Logistic Regression": {"max_iter": 2000},
    "Bernoulli Naive Bayes": {"alpha": 0.02},
}


def train_on_synthetic(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    target: str,
    classifiers: Sequence[str] = CLASSIFIERS,
    protocol: str = "ranking",
    seed: int = 0,
) -> dict[str, float]:
    """Area under the ROC, on real rows, of classifiers trained on synthetic. Higher is better, 0 to 1. Not private.

    Args:
        real: real rows that the synthesizer has not seen.
        synthetic: the rows to learn from. If they hold one class alone, nothing can be learnt and the area is 0.5.
        schema: describes both tables.
        target: a column of two values; the second is the positive one.
        classifiers: which of the paper's twelve, by name.
        protocol: "ranking" judges by predicted probabilities or margins, on standardised columns; "dp-merf" by
            predicted labels, on columns as they are, as DP-MERF's code and the paper do, which gives lower areas.
        seed: repeats the same training.
    """
    schema = as_schema(schema)
    if protocol not in PROTOCOLS:
        raise ParameterError(f"protocol={protocol!r} is not {' or '.join(map(repr, PROTOCOLS))}")
    for name in classifiers:
        if name not in _SETTINGS:
            hint = did_you_mean(name, CLASSIFIERS)
            raise ParameterError(f"classifiers: {name!r} is not one of {', '.join(CLASSIFIERS)}{hint}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError(f"seed={seed!r} is not a non-negative whole number")
    tests, learns = open_table(real, schema), open_table(synthetic, schema)
    _check_target(schema, target)
    models = {name: _make(name, int(seed), protocol) for name in classifiers}
    roc_auc_score = load_optional("sklearn.metrics", "train_on_synthetic").roc_auc_score

    train_x, train_y = _features(learns, target), _labels(learns, target, "synthetic")
    test_x, test_y = _features(tests, target), _labels(tests, target, "real")
    if test_y.all() or not test_y.any():
        raise InputError(f"real holds one value of {target!r} alone; the AUC needs rows of both classes")
    if train_y.all() or not train_y.any():
        return dict.fromkeys(classifiers, 0.5)
    if protocol == "ranking":
        mean, spread = train_x.mean(axis=0), train_x.std(axis=0)
        spread[spread == 0] = 1.0
        train_x, test_x = (train_x - mean) / spread, (test_x - mean) / spread
    areas = {}
    for name, model in progress(list(models.items()), "training classifiers", unit="classifier"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged, collinear: what such data do to a classifier is the result
            model.fit(train_x, train_y.astype(np.int64))
            areas[name] = float(roc_auc_score(test_y, _scores(model, protocol)(test_x)))
    return areas


def _scores(model: Any, protocol: str) -> Callable[[Floats], Any]:
    if protocol != "dp-merf" and hasattr(model, "predict_proba"):
        return lambda x: model.predict_proba(x)[:, 1]
    scores: Callable[[Floats], Any] = model.predict if protocol == "dp-merf" else model.decision_function
    return scores


def _check_target(schema: Schema, target: str) -> None:
    if target not in schema:
        raise SchemaError(f"target={target!r} is not a column of the schema{did_you_mean(target, schema)}")
    column = schema[target]
    is_binary = len(column.listed) == 2
    if isinstance(column, Integer) and column.has_bounds:
        is_binary = column.high - column.low == 1
    if not is_binary or column.nullable:
        raise SchemaError(f"target={target!r} is not a column of exactly two values without nulls")


def _make(name: str, seed: int, protocol: str) -> Any:
    module, kind, options = _SETTINGS[name]
    if protocol == "dp-merf":
        options = options | _DP_MERF_OPTIONS.get(name, {})
    model = getattr(load_optional(module, f"the classifier {name!r}"), kind)(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model


def _labels(table: Table, target: str, argument: str) -> Truths:
    physical, column = table.physical(target), table.schema[target]
    if physical.is_null is not None and physical.is_null.any():
        raise InputError(f"column {target!r} of {argument} holds a missing value, and the target may not")
    return np.asarray(physical.values > whole_range(column)[0])


def _features(table: Table, target: str) -> Floats:
    """Every other column as floats; categories as one column per value, nulls as a column of their own and 0."""
    features = []
    for name, column in table.schema.items():
        if name == target:
            continue
        physical = table.physical(name)
        is_null = physical.is_missing
        if is_null.any() and not column.nullable:
            raise InputError(
                f"column {name!r} holds a missing or non-finite value; declare it nullable or clean the table"
            )
        if column._axis_kind == "category":
            features += [((physical.values == i) & ~is_null).astype(np.float64) for i in range(len(column.listed))]
        else:
            features.append(np.where(is_null, 0, physical.values).astype(np.float64))
        if column.nullable:
            features.append(is_null.astype(np.float64))
    if not features:
        raise SchemaError(f"the schema has no column beside the target {target!r} to learn from")
    return np.stack(features, axis=1)
