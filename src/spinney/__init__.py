"""Spinney turns a private table into a differentially private synthetic one, with noisy trees.

This module is the only public interface. Names load on first use, so `import spinney` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.auditing.audit import audit
    from spinney.columns import Boolean, Category, Date, Datetime, Identifier, Ignore, Integer, Real, Time
    from spinney.errors import SpinneyError
    from spinney.planning.plan import plan
    from spinney.plotting import plot
    from spinney.privacy.entropy import UnsafeSeededEntropy
    from spinney.privacy.ledger import Ledger
    from spinney.release.answers.analyse import analyse
    from spinney.release.answers.combine import combine
    from spinney.release.model import Release
    from spinney.release.storage import load
    from spinney.schema.people import Link, Tables
    from spinney.schema.places import Place
    from spinney.schema.rules import AtMost, Derived, EmptyWhen, First, Implies, NeverAfter, Sum
    from spinney.schema.table import Schema
    from spinney.synthesizers.buying import buy_answer
    from spinney.synthesizers.checking import check
    from spinney.synthesizers.forest import ForestSynthesizer
    from spinney.synthesizers.grid import GridSynthesizer
    from spinney.synthesizers.linked import LinkedSynthesizer
    from spinney.synthesizers.paper_tree import PaperTreeSynthesizer
    from spinney.synthesizers.synthesize import synthesize
    from spinney.synthesizers.tree import KDTreeSynthesizer
    from spinney.tables.csv.format import CSV

__version__ = "0.1.0"

_HOME = {
    "CSV": "spinney.tables.csv.format",
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
    "Link": "spinney.schema.people",
    "NeverAfter": "spinney.schema.rules",
    "Place": "spinney.schema.places",
    "Sum": "spinney.schema.rules",
    "Schema": "spinney.schema.table",
    "Tables": "spinney.schema.people",
    "GridSynthesizer": "spinney.synthesizers.grid",
    "ForestSynthesizer": "spinney.synthesizers.forest",
    "KDTreeSynthesizer": "spinney.synthesizers.tree",
    "PaperTreeSynthesizer": "spinney.synthesizers.paper_tree",
    "LinkedSynthesizer": "spinney.synthesizers.linked",
    "Ledger": "spinney.privacy.ledger",
    "Release": "spinney.release.model",
    "SpinneyError": "spinney.errors",
    "UnsafeSeededEntropy": "spinney.privacy.entropy",
    "analyse": "spinney.release.answers.analyse",
    "audit": "spinney.auditing.audit",
    "buy_answer": "spinney.synthesizers.buying",
    "check": "spinney.synthesizers.checking",
    "combine": "spinney.release.answers.combine",
    "load": "spinney.release.storage",
    "plan": "spinney.planning.plan",
    "plot": "spinney.plotting",
    "synthesize": "spinney.synthesizers.synthesize",
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
    "PaperTreeSynthesizer",
    "Place",
    "Real",
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
    "load",
    "plan",
    "plot",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spinney' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
