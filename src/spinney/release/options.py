"""Signatures that list their options, and errors that explain a wrong one.

`sample` and `weighted_points` name every option, so that `help`, editors and type checkers know them. Python's own
message for an unknown one says neither which there are nor which was meant; `explains_options` does. It also lets
`num_rows`, as other libraries call it, stand for `n_rows`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from spinney.errors import ParameterError
from spinney.suggest import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

# What other libraries call the options of `sample`.
_ELSEWHERE = {"n": "n_rows", "size": "n_rows", "count": "n_rows", "random_state": "seed", "conditions": "where"}
_ELSEWHERE |= {"output_format": "frame", "as_frame": "frame", "dtypes": "like", "schema": "like"}
_OF_MOMENTS = "; several draws are for forests and for trees with moments, whose noise can be drawn again"
_OF_PERSONS = "; persons are drawn with all their rows: say how many with `persons`"
_ROWS = ("n_rows", "num_rows", "rows", "n", "size", "count")
_OF_FORESTS = "; conditions are for forests: fit with sp.ForestSynthesizer, or filter the rows"


def explains_options(method: F) -> F:
    """A decorator: an option that the method lacks raises a ParameterError that lists its options.

    The signature stays that of the method. Its class says by `_contents()` what the release holds.
    """
    known = [name for name in inspect.signature(method).parameters if name != "self"]

    @wraps(method)
    def checked(self: Any, *arguments: Any, **options: Any) -> Any:
        if "n_rows" in known and "num_rows" in options:
            given = arguments[0] if arguments else options.pop("n_rows", None)
            arguments = (one_number_of_rows(given, options), *arguments[1:])
        if not options.keys() <= set(known):
            contents = "persons" if "persons" in known else self._contents()
            _refuse_unknown(method.__name__, contents, options, known)
        return method(self, *arguments, **options)

    return cast(F, checked)


def one_number_of_rows(n_rows: Any, options: dict[str, Any]) -> Any:
    """The number of rows, which may also be given as `num_rows`; takes that out of the options."""
    other = options.pop("num_rows", None)
    if n_rows is not None and other is not None:
        raise ParameterError("n_rows and num_rows are both given, and mean the same; give n_rows")
    return other if n_rows is None else n_rows


def _refuse_unknown(verb: str, contents: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise where an option is not one of those that this kind of release has, and say which these are."""
    for name in given:
        if name not in known:
            hint = _OF_FORESTS if name in ("where", "balance") else did_you_mean(name, known)
            hint = _OF_MOMENTS if name == "draws" else hint
            if _ELSEWHERE.get(name) in known:
                hint = f"; did you mean {_ELSEWHERE[name]!r}?"
            if "persons" in known and name not in _ELSEWHERE:
                hint = did_you_mean(name, known)
            if "persons" in known and name in _ROWS:
                hint = _OF_PERSONS
            raise ParameterError(
                f"{verb}() has no option {name!r} for a release of {contents}; its options are {', '.join(known)}{hint}"
            )
