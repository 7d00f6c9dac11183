"""Every argument at the front door is explained: what `help(...)` shows has an Args entry for each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import spinney as sp
from spinney.columns import Column
from spinney.schema.rules import Rule
from support.in_one_test import in_one_test


def public_calls() -> dict[str, tuple[Callable[..., Any], str]]:
    """Everything that can be called at the door, by name, with the docstring that explains it.

    Column types and rules are stated, not called: their methods are how Spinney asks them, so only what states them is
    looked at. What a class takes from Python itself, such as the methods of a mapping, is explained there.
    """
    found = {}
    for name in sp.__all__:
        value = getattr(sp, name)
        if inspect.isfunction(value):
            found[name] = (value, inspect.getdoc(value) or "")
        elif inspect.isclass(value) and not issubclass(value, BaseException):
            if not inspect.isabstract(value):
                found[name] = (value, inspect.getdoc(value) or "")
            if not issubclass(value, (Column, Rule)):
                found |= {f"{name}.{method}": made for method, made in public_methods(value)}
    return found


def public_methods(kind: type) -> list[tuple[str, tuple[Callable[..., Any], str]]]:
    """The methods of a class that are ours and meant for callers; a bound one has no `self` to explain."""
    methods = []
    for name in dir(kind):
        method = getattr(kind, name)
        home = getattr(inspect.unwrap(method) if callable(method) else method, "__module__", "")
        if not name.startswith("_") and inspect.isroutine(method) and home.startswith("spinney"):
            methods.append((name, (method, inspect.getdoc(method) or "")))
    return methods


def explained(docstring: str) -> set[str]:
    """The names that stand in the Args of a docstring."""
    found = re.search(r"^Args:\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    return set(re.findall(r"^    \*{0,2}(\w+): \S", found[1], re.MULTILINE)) if found else set()


def parameters(call: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(call).parameters) - {"self", "cls"}


@in_one_test("name", public_calls())
def test_every_parameter_is_explained(name):
    """Parameters and Args are the same names: none is missing, none is left over."""
    call, docstring = public_calls()[name]
    assert explained(docstring) == parameters(call)


def test_the_walk_sees_the_doors():
    """Constructors, methods, static methods and functions are all looked at, and a missing entry would be noticed."""
    seen = public_calls()
    assert len(seen) > 60
    doors = ("load", "check", "synthesize", "Real", "Schema.template", "Schema.from_sdv", "Ledger", "Ledger.create")
    assert {*doors, "ForestSynthesizer.sample", "Release.sample", "KDTreeSynthesizer.fit"} <= set(seen)
    assert explained(
        "Text.\n\nArgs:\n    one: the first,\n        at length.\n    **two: the rest.\n\nRaises:\n    E: x."
    ) == {
        "one",
        "two",
    }
    assert explained("Text about `one`.") == set()
