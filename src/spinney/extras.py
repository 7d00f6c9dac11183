"""Optional libraries: imported on use, or named in an error that says what to type.

The library itself is the first remedy, because `pip install NAME` works wherever Spinney came from: an index, a wheel
or a checkout. The extra is the second: it holds the versions that Spinney is tested with. A module and its package may
be called differently, and of some packages one build is wanted rather than another.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from spinney.errors import MissingExtraError

# Of each optional module: what pip calls it, and the extra of Spinney that brings it.
OPTIONAL = {
    "cryptography": ("cryptography", "sign"),
    "duckdb": ("duckdb", "duckdb"),
    "finufft": ("finufft", "metrics"),
    "jax": ("jax", "baselines"),
    "jinja2": ("jinja2", "report"),
    "markupsafe": ("jinja2", "report"),
    "matplotlib": ("matplotlib", "plot"),
    "optax": ("optax", "baselines"),
    "pandas": ("pandas", "pandas"),
    "polars": ("polars", "polars"),
    "psycopg": ("psycopg", "postgres"),
    "pyspark": ("pyspark", "spark"),
    "python_multipart": ("python-multipart", "studio"),
    "scipy": ("scipy", "baselines"),
    "starlette": ("starlette", "studio"),
    "uvicorn": ("uvicorn", "studio"),
    "sklearn": ("scikit-learn", "classify"),
    # The usual build for Linux brings hundreds of megabytes of CUDA.
    "xgboost": ("xgboost-cpu" if sys.platform == "linux" else "xgboost", "classify"),
}


def load_optional(module: str, what: str, *, extra: str | None = None, otherwise: str | None = None) -> Any:
    """A module of an optional library, or a MissingExtraError with the command that installs it.

    Args:
        module: what is imported, such as "sklearn.metrics".
        what: what needs it, as the subject of a sentence: "engine='polars'".
        extra: the extra that brings it, where that is not the one listed above.
        otherwise: what can be done instead, as in "leave engine out".
    """
    try:
        return import_module(module)
    except ImportError as err:
        package, usual = OPTIONAL[module.partition(".")[0]]
        rest = "" if otherwise is None else f", or {otherwise}"
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed; pip install {package}, "
            f"or install Spinney with its extra {extra or usual!r}{rest}"
        ) from err
