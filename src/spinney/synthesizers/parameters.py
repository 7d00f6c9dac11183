"""Scikit-learn's parameter protocol in a few lines: `clone`, grid search and reprs work without depending on it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Self

from spinney.errors import UnknownParameterError
from spinney.shown import is_typed
from spinney.suggest import did_you_mean

# Lists and mappings of more than this are shown by their type alone: they may be columns of a table.
_MOST_SHOWN = 20


class Parameters:
    """Mixin for classes whose `__init__` stores its keyword arguments under their own names and does nothing else."""

    # Parameters that people may look for here, and where they are or what they are called.
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__init__" in vars(cls):
            cls.__init__ = _naming_strangers(cls.__init__)  # type: ignore[method-assign]  # the same, with a better error

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - part of the protocol, nothing nests here
        """The constructor's arguments and their present values.

        Args:
            deep: part of scikit-learn's protocol; nothing nests here, so it makes no difference.
        """
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; a later `fit` uses them.

        Args:
            **params: the constructor's arguments, by name.

        Raises:
            ParameterError: there is no such argument.
        """
        self._refuse_strangers(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def _refuse_strangers(cls, given: Mapping[str, Any]) -> None:
        """Raise on a name that is not a parameter: say where it went, or what there is."""
        known = cls._defaults()
        for name in given:
            if name in known:
                continue
            hint = cls._elsewhere.get(name) or f"it has {', '.join(sorted(known))}{did_you_mean(name, known)}"
            raise UnknownParameterError(f"{name!r} is not a parameter of {cls.__name__}; {hint}")

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self._defaults()}
        changed = [
            f"{name}={_shown(value)}"
            for name, value in values.items()
            if value is not self._defaults()[name] and _differs(value, self._defaults()[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _naming_strangers(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses unknown keywords as `set_params` does, with its signature and its docstring."""

    @wraps(init)
    def checked(self: Parameters, *given: Any, **named: Any) -> None:
        if named:
            type(self)._refuse_strangers(named)
        init(self, *given, **named)

    return checked


def _shown(value: Any) -> str:
    """A parameter in the call that makes the model; of tables and arrays the shape alone, of long lists the type."""
    if _n_typed(value) <= _MOST_SHOWN:
        return repr(value)
    return f"<shape {value.shape}>" if hasattr(value, "shape") else f"<a {type(value).__name__}>"


def _n_typed(value: Any) -> float:
    """How many numbers and names a parameter is made of; infinitely many of tables, arrays and other objects."""
    if isinstance(value, Mapping):
        return sum(map(_n_typed, value)) + sum(map(_n_typed, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_n_typed, value))
    return 1 if is_typed(value) else math.inf


def _differs(value: Any, default: Any) -> bool:
    """Whether a parameter was changed; tables and arrays, which compare element by element, always are."""
    if default is None:
        return value is not None
    try:
        return bool(value != default)
    except Exception:  # whatever a library says of comparing its tables with a number or a name
        return True
