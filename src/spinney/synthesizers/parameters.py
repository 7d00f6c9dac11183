"""Scikit-learn's parameter protocol in a few lines: `clone`, grid search and reprs work without depending on it."""

from __future__ import annotations

import inspect
from typing import Any, Self

from spinney.errors import ParameterError
from spinney.suggest import did_you_mean


class Parameters:
    """Mixin for classes whose `__init__` stores its keyword arguments under their own names and does nothing else."""

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
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise ParameterError(
                    f"{name!r} is not a parameter of {type(self).__name__}; it has {', '.join(sorted(known))}"
                    f"{did_you_mean(name, known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self._defaults()}
        changed = [
            f"{name}={value!r}" if not hasattr(value, "shape") or value.shape == () else f"{name}=<shape {value.shape}>"
            for name, value in values.items()
            if value is not self._defaults()[name] and _differs(value, self._defaults()[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _differs(value: Any, default: Any) -> bool:
    """Whether a parameter was changed; arrays, which compare element by element, always are."""
    try:
        return bool(value != default)
    except ValueError:
        return True
