"""Spinney turns a private table into a differentially private synthetic one, with noisy trees.

This module is the only public interface. Names load on first use, so `import spinney` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney import errors, plot
    from spinney.columns import Boolean, Category, Date, Datetime, Identifier, Ignore, Integer, Real, Time
    from spinney.errors import SpinneyError
    from spinney.planning.plan import plan
    from spinney.privacy.entropy import UnsafeSeededEntropy
    from spinney.privacy.ledger import Ledger
    from spinney.release.answers.combine import analyse, combine
    from spinney.release.file import load
    from spinney.release.release import Release
    from spinney.schema.linked import Link, Tables
    from spinney.schema.places import Place
    from spinney.schema.rules import AtMost, Derived, EmptyWhen, First, Implies, NeverAfter, OnlyOn, Related, Sum
    from spinney.schema.schema import Schema
    from spinney.synthesizers.buy import buy_answer
    from spinney.synthesizers.check import check
    from spinney.synthesizers.forest import ForestSynthesizer
    from spinney.synthesizers.linked import LinkedSynthesizer
    from spinney.synthesizers.method import synthesize
    from spinney.synthesizers.partition import GridSynthesizer, PaperTreeSynthesizer
    from spinney.synthesizers.tree import KDTreeSynthesizer
    from spinney.tables.csv import CSV
    from spinney_audit.audit import audit

__version__ = "0.1.0"

_HOME = {
    "CSV": "spinney.tables.csv",
    "Boolean": "spinney.columns",
    "Category": "spinney.columns",
    "Date": "spinney.columns",
    "Datetime": "spinney.columns",
    "Identifier": "spinney.columns",
    "Ignore": "spinney.columns",
    "Integer": "spinney.columns",
    "Real": "spinney.columns",
    "Time": "spinney.columns",
    "AtMost": "spinney.schema.rules",
    "Derived": "spinney.schema.rules",
    "EmptyWhen": "spinney.schema.rules",
    "First": "spinney.schema.rules",
    "Implies": "spinney.schema.rules",
    "Link": "spinney.schema.linked",
    "NeverAfter": "spinney.schema.rules",
    "OnlyOn": "spinney.schema.rules",
    "Place": "spinney.schema.places",
    "Related": "spinney.schema.rules",
    "Sum": "spinney.schema.rules",
    "Schema": "spinney.schema.schema",
    "Tables": "spinney.schema.linked",
    "GridSynthesizer": "spinney.synthesizers.partition",
    "ForestSynthesizer": "spinney.synthesizers.forest",
    "KDTreeSynthesizer": "spinney.synthesizers.tree",
    "PaperTreeSynthesizer": "spinney.synthesizers.partition",
    "LinkedSynthesizer": "spinney.synthesizers.linked",
    "Ledger": "spinney.privacy.ledger",
    "Release": "spinney.release.release",
    "SpinneyError": "spinney.errors",
    "UnsafeSeededEntropy": "spinney.privacy.entropy",
    "analyse": "spinney.release.answers.combine",
    "audit": "spinney_audit.audit",
    "buy_answer": "spinney.synthesizers.buy",
    "check": "spinney.synthesizers.check",
    "combine": "spinney.release.answers.combine",
    "errors": "spinney.errors",
    "load": "spinney.release.file",
    "plan": "spinney.planning.plan",
    "plot": "spinney.plot",
    "synthesize": "spinney.synthesizers.method",
}

__all__ = [
    "CSV",
    "AtMost",
    "Boolean",
    "Category",
    "Date",
    "Datetime",
    "Derived",
    "EmptyWhen",
    "First",
    "ForestSynthesizer",
    "GridSynthesizer",
    "Identifier",
    "Ignore",
    "Implies",
    "Integer",
    "KDTreeSynthesizer",
    "Ledger",
    "Link",
    "LinkedSynthesizer",
    "NeverAfter",
    "OnlyOn",
    "PaperTreeSynthesizer",
    "Place",
    "Real",
    "Related",
    "Release",
    "Schema",
    "SpinneyError",
    "Sum",
    "Tables",
    "Time",
    "UnsafeSeededEntropy",
    "__version__",
    "analyse",
    "audit",
    "buy_answer",
    "check",
    "combine",
    "errors",
    "load",
    "plan",
    "plot",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spinney' has no attribute {name!r}")
    home = import_module(_HOME[name])
    value = home if home.__name__ == f"spinney.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
