"""Results of an experiment: flat records, what led to them, and their file.

A record is one task (what was asked) together with what came out, its seed and its seconds. Pictures, tables and
verdicts are made from results alone, so a committed file is all that a reader needs to make them again.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinney
from spinney.errors import FileError
from spinney.files import write_whole

Params = Mapping[str, Any]
Task = dict[str, Any]
Record = dict[str, Any]
Floats = NDArray[np.float64]

FORMAT, FORMAT_VERSION = "spinney-experiment", 1

_PACKAGES = ("numpy", "numba", "finufft", "scikit-learn", "xgboost", "xgboost-cpu", "jax", "optax", "matplotlib")


@dataclass(frozen=True, slots=True)
class Results:
    """All records of one experiment."""

    id: str
    is_quick: bool
    params: Params
    records: list[Record]
    versions: Mapping[str, str]

    def where(self, **wanted: Any) -> list[Record]:
        """Records that have all these values, in the order of the tasks."""
        return [record for record in self.records if all(record.get(name) == value for name, value in wanted.items())]

    def values(self, field: str, **wanted: Any) -> Floats:
        """One field of the records that have all these values; records without it are left out."""
        found = [record[field] for record in self.where(**wanted) if record.get(field) is not None]
        return np.array(found, dtype=np.float64)

    def mean(self, field: str, **wanted: Any) -> float:
        """The mean over repetitions; nan where there are none."""
        values = self.values(field, **wanted)
        return float(values.mean()) if len(values) else math.nan

    def range(self, field: str, **wanted: Any) -> tuple[float, float]:
        """Smallest and largest value over repetitions; nan where there are none."""
        values = self.values(field, **wanted)
        return (float(values.min()), float(values.max())) if len(values) else (math.nan, math.nan)

    @property
    def seconds(self) -> float:
        """What all tasks together took."""
        return math.fsum(record.get("seconds", 0.0) for record in self.records)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all: one record a line."""
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "id": self.id,
            "is_quick": self.is_quick,
            "parameters": self.params,
            "versions": self.versions,
        }
        opening = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
        lines = ",\n".join("  " + as_json(record) for record in self.records)
        text = f'{opening},\n "records": [\n{lines}\n ]\n}}\n'
        write_whole(path, text, overwrite=overwrite)

    @classmethod
    def read(cls, path: str | Path) -> Results:
        """Results from their file."""
        try:
            held = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as err:
            raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err
        except ValueError as err:
            raise FileError(f"{str(path)!r} is not a file of results: it does not hold JSON") from err
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise FileError(f"{str(path)!r} is not a file of results of `spinney paper`")
        if held.get("format_version") != FORMAT_VERSION:
            raise FileError(
                f"{str(path)!r} has format version {held.get('format_version')!r}, this version of Spinney reads "
                f"{FORMAT_VERSION}; run the experiment again"
            )
        try:
            return cls(held["id"], held["is_quick"], held["parameters"], held["records"], held["versions"])
        except KeyError as err:
            raise FileError(f"{str(path)!r} is damaged: {err.args[0]!r} is missing") from err


def as_json(value: Any) -> str:
    """Canonical JSON on one line. Not-a-number is refused: a reader in another language could not read it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def versions() -> dict[str, str]:
    """Python, Spinney and whatever else could change a figure, as installed."""
    found = {"python": platform.python_version(), "spinney": spinney.__version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
