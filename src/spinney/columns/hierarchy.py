"""Hierarchies of codes: which codes are siblings, by what they begin with or by the parents that were stated.

    hierarchy=[1, 3]                              "A01.1" belongs to "A01", and that to "A"
    hierarchy={"01101": "Alabama", ...}           a code belongs to its parent, which may have a parent itself

A code that is a parent of others heads its own group. `other` belongs to no group. The list of a column is put into the
order of its hierarchy: groups in the order of their first codes, so that every group is a range of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.columns.characters import check_characters
from spinney.errors import SchemaError
from spinney.shown import brief
from spinney.suggest import did_you_mean

Hierarchy = tuple[int, ...] | tuple[tuple[str, str], ...]
Path = tuple[str | None, ...]

_MOST_LEVELS = 16


def parse_hierarchy(given: Any) -> Hierarchy:
    """A hierarchy as a column keeps it: lengths of prefixes, or pairs of a code and its parent."""
    if isinstance(given, Mapping):
        given = tuple(given.items())
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise SchemaError(
            f"Category: hierarchy={brief(given)} is not a list of prefix lengths such as [1, 3] or a mapping from "
            "values to their parents"
        )
    if all(type(length) is int for length in given):
        is_ascending = list(given) == sorted(set(given))
        if given[0] < 1 or not is_ascending or len(given) > _MOST_LEVELS:
            raise SchemaError(
                f"Category: hierarchy={brief(list(given))} is not a list of at most {_MOST_LEVELS} ascending numbers "
                "of characters such as [1, 3]"
            )
        return tuple(given)
    if not all(isinstance(pair, tuple) and len(pair) == 2 and all(map(_is_label, pair)) for pair in given):
        raise SchemaError("Category: hierarchy maps values to parents, and both must be strings or whole numbers")
    check_characters((label for pair in given for label in pair), "Category: hierarchy: ")
    return tuple((str(child), str(parent)) for child, parent in given)


def hierarchy_to_plain(hierarchy: Hierarchy) -> list[int] | dict[str, str]:
    """A hierarchy as TOML and JSON have it."""
    lengths = [length for length in hierarchy if isinstance(length, int)]
    return lengths or {pair[0]: pair[1] for pair in hierarchy if isinstance(pair, tuple)}


def in_hierarchy_order(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> tuple[Any, ...]:
    """The values so that every group is a range; `other` is the last."""
    groups = _group_numbers(_paths(values, hierarchy, other))
    places = sorted(range(len(values)), key=lambda place: (values[place] == other, groups[place]))
    return tuple(values[place] for place in places)


def group_starts(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> list[list[int]]:
    """For every level, coarse to fine, the places but the first at which a group begins, of values in that order."""
    groups = _group_numbers(_paths(values, hierarchy, other))
    return [
        [place for place in range(1, len(groups)) if groups[place][level] != groups[place - 1][level]]
        for level in range(len(groups[0]))
    ]


def _paths(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> list[Path]:
    """The groups of every value, coarse to fine, as many for each: what is in no more groups is one by itself."""
    lengths = [length for length in hierarchy if isinstance(length, int)]
    paths = _prefixes(values, lengths) if lengths else _ancestors(values, dict(_pairs(hierarchy)))
    n_levels = max(map(len, paths))
    return [
        (None,) * n_levels if value == other else (*path, *[str(value)] * (n_levels - len(path)))
        for value, path in zip(values, paths, strict=True)
    ]


def _prefixes(values: Sequence[Any], lengths: Sequence[int]) -> list[Path]:
    return [tuple(str(value)[:length] for length in lengths) for value in values]


def _ancestors(values: Sequence[Any], parents: Mapping[str, str]) -> list[Path]:
    """The chain of parents of every value, the value itself last where it is a parent."""
    labels = [str(value) for value in values]
    known, heads = {*labels, *parents.values()}, set(parents.values())
    for child in parents:
        if child not in known:
            raise SchemaError(
                f"Category: hierarchy names {brief(child)}, which is neither a value nor a parent of one"
                f"{did_you_mean(child, known)}"
            )
    return [_chain(label, parents, heads) for label in labels]


def _chain(label: str, parents: Mapping[str, str], heads: set[str]) -> Path:
    chain = [label] if label in heads else []
    parent = parents.get(label)
    while parent is not None:
        chain.append(parent)
        if len(chain) > _MOST_LEVELS:
            raise SchemaError(
                f"Category: hierarchy has more than {_MOST_LEVELS} parents above {brief(label)}, or goes in a circle"
            )
        parent = parents.get(parent)
    return tuple(reversed(chain))


def _pairs(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    pairs = [pair for pair in hierarchy if isinstance(pair, tuple)]
    seen: set[str] = set()
    for child, _ in pairs:
        if child in seen:
            raise SchemaError(f"Category: hierarchy gives {brief(child)} two parents; give it one")
        seen.add(child)
    return pairs


def _group_numbers(paths: Sequence[Path]) -> list[tuple[int, ...]]:
    """Groups by number, in the order of their first values; a group is one of its level and of its own group."""
    numbers: list[dict[Path, int]] = [{} for _ in paths[0]]
    return [
        tuple(known.setdefault(path[: level + 1], len(known)) for level, known in enumerate(numbers)) for path in paths
    ]


def _is_label(label: Any) -> bool:
    return type(label) in (str, int)
