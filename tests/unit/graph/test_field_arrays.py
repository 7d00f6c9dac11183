"""Fields as arrays: what is written is read, and what is forged is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.graph.crf import Field, field_from_arrays, field_to_arrays
from spinney.graph.crf_inference import FieldClique
from support.in_one_test import in_one_test
from support.slow_fields import random_evidence, random_field
from support.strategies import MODEST


@MODEST
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_a_field_comes_back(seed: int, role: bool, masks: bool) -> None:
    """Through JSON too: the same potentials, masks and drawn rows."""
    rng = np.random.default_rng(seed)
    field = random_field(rng, role=role, masks=masks)
    arrays, described = field_to_arrays(field)
    assert all(line.ndim == 1 for line in arrays.values())
    found = field_from_arrays(arrays, json.loads(json.dumps(described)))
    assert found.layout == field.layout
    np.testing.assert_array_equal(found.potentials, field.potentials)
    evidence = random_evidence(rng, field, 20)
    one, two = (f.draw(evidence, np.random.default_rng(1)) for f in (field, found))
    np.testing.assert_array_equal(one, two)


def written() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    tables = {
        FieldClique((), (0, 1)): np.eye(3),
        FieldClique((), (1, 2)): np.eye(3),
        FieldClique((0,), (0,)): np.ones((2, 3)),
        FieldClique((1,), (2,)): np.ones((2, 3)),
    }
    field = Field.of([3, 3, 3, 2], [2, 2], tables, role=3, masks=[(0, 1, np.ones((2, 3), dtype=bool))])
    return field_to_arrays(field)


FORGERIES: dict[str, Callable[[dict, dict], Any]] = {
    "infinite": lambda a, d: a["potentials"].__setitem__(0, -np.inf),
    "not a number": lambda a, d: a["potentials"].__setitem__(3, np.nan),
    "huge": lambda a, d: a["potentials"].__setitem__(0, 1e300),
    "short": lambda a, d: a.update(potentials=a["potentials"][:-1]),
    "long": lambda a, d: a.update(potentials=np.append(a["potentials"], 0.0)),
    "narrow": lambda a, d: a.update(potentials=a["potentials"].astype(np.float32)),
    "a table": lambda a, d: a.update(potentials=a["potentials"][None]),
    "no potentials": lambda a, d: a.pop("potentials"),
    "no masks": lambda a, d: a.pop("possible"),
    "masks of numbers": lambda a, d: a.update(possible=a["possible"].astype(np.int8)),
    "short masks": lambda a, d: a.update(possible=a["possible"][:-1]),
    "a circle": lambda a, d: d["pairs"].insert(1, [0, 2]),
    "a pair of one": lambda a, d: d["pairs"].__setitem__(0, [0, 0]),
    "a pair twice": lambda a, d: d["pairs"].append([1, 2]),
    "a pair with the role": lambda a, d: d["pairs"].__setitem__(1, [1, 3]),
    "a descending pair": lambda a, d: d["pairs"].__setitem__(0, [1, 0]),
    "pairs in another order": lambda a, d: d["pairs"].reverse(),
    "links in another order": lambda a, d: d["links"].reverse(),
    "a link twice": lambda a, d: d["links"].append([1, 2]),
    "a link of other evidence": lambda a, d: d["links"].__setitem__(0, [2, 0]),
    "a negative link": lambda a, d: d["links"].__setitem__(0, [-1, 0]),
    "a link of three": lambda a, d: d["links"].__setitem__(0, [0, 0, 0]),
    "a mask of another column": lambda a, d: d["masks"].__setitem__(0, [0, 4]),
    "a role of another column": lambda a, d: d.update(role=4),
    "a role that is true": lambda a, d: d.update(role=True),
    "another role": lambda a, d: d.update(role=None),
    "a size of none": lambda a, d: d["sizes"].__setitem__(0, 0),
    "a size that is no number": lambda a, d: d["sizes"].__setitem__(0, 3.0),
    "a huge size": lambda a, d: d["sizes"].__setitem__(0, 1 << 62),
    "large sizes": lambda a, d: d.update(sizes=[1 << 20] * 4),
    "no columns": lambda a, d: d.update(sizes=[], role=None, pairs=[], links=[], masks=[]),
    "many columns": lambda a, d: d.update(sizes=[1] * 20_000),
    "sizes of text": lambda a, d: d.update(sizes="333"),
    "no links": lambda a, d: d.pop("links"),
}


@in_one_test("forgery", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_fields_are_refused(forgery: Callable[[dict, dict], Any]) -> None:
    """Whatever is wrong with arrays or description is an error, before anything large is made of it."""
    arrays, described = copy.deepcopy(written())
    field_from_arrays(arrays, described)
    forgery(arrays, described)
    with pytest.raises((ValueError, KeyError)):
        field_from_arrays(arrays, described)


@pytest.mark.parametrize("described", [None, [], "field", 3])
def test_what_describes_nothing_is_refused(described: Any) -> None:
    """A description is a table of entries."""
    with pytest.raises(ValueError, match="field"):
        field_from_arrays(written()[0], described)
