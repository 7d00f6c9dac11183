"""What some columns say implies what others may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.errors import SchemaError
from spinney.schema.rules.base import Clause, Columns, Rule, check_name
from spinney.schema.rules.values import Condition, ValueSet, described, parse_condition, shown, universe, value_set
from spinney.shown import brief

if TYPE_CHECKING:
    from numpy.typing import NDArray

Conditions = tuple[tuple[str, Condition], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Implies(Rule):
    """Where `when` holds in a row, `then` does too: `Implies({"age": (0, 14)}, {"marital": ["never", None]})`.

    Both are conditions by column: a value, a range `(low, high)` with both ends, of which one may be None, a list of
    these, or None for null. In a forest, combinations that are excluded get no noise and no rows.

    Args:
        when: conditions by column; several are joined by "and".
        then: what holds then, by column; all of it does.
    """

    type_name: ClassVar[str] = "implies"

    when: Any  # kept as Conditions
    then: Any

    def __post_init__(self) -> None:
        for side in ("when", "then"):
            given = getattr(self, side)
            if not isinstance(given, Mapping) or not given:
                raise SchemaError(
                    f"Implies: {side}={brief(given)} is not a mapping from columns to conditions such as "
                    "{'age': (0, 14)}"
                )
            for name in given:
                check_name(self, name)
            conditions = [(name, parse_condition(c, f"Implies: column {name!r}")) for name, c in given.items()]
            # By name: a TOML file does not keep the order of a table.
            object.__setattr__(self, side, tuple(sorted(conditions, key=lambda pair: pair[0])))
        both = [name for name, _ in self.then if name in dict(self.when)]
        if both:
            raise SchemaError(f"Implies: column {both[0]!r} is in when and in then; a rule relates different columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in (*self.when, *self.then))

    def check(self, columns: Columns) -> None:
        for name, allowed in {**self._sets(self.when, columns), **self._sets(self.then, columns)}.items():
            if allowed.has_all(columns[name]):
                raise SchemaError(f"Implies: the condition on column {name!r} allows all of its values; leave it out")

    def _sets(self, conditions: Conditions, columns: Columns) -> dict[str, ValueSet]:
        return {name: value_set(columns[name], stated, f"Implies: column {name!r}") for name, stated in conditions}

    def clauses(self, columns: Columns) -> list[Clause]:
        unless = {name: stated.outside(columns[name]) for name, stated in self._sets(self.when, columns).items()}
        return [unless | {name: stated} for name, stated in self._sets(self.then, columns).items()]

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        import numpy as np

        inside = {name: np.clip(rows[name], *universe(schema[name])) for name in self.columns}  # as they are counted
        met = [stated.holds(inside[name]) for name, stated in self._sets(self.when, schema).items()]
        kept = [stated.holds(inside[name]) for name, stated in self._sets(self.then, schema).items()]
        return np.asarray(~np.logical_and.reduce(met) | np.logical_and.reduce(kept))

    def to_dict(self) -> dict[str, Any]:
        sides: dict[str, Conditions] = {"when": self.when, "then": self.then}
        return {"type": self.type_name} | {
            side: {name: described(stated) for name, stated in conditions} for side, conditions in sides.items()
        }

    def __repr__(self) -> str:
        when, then = ({name: shown(stated) for name, stated in side} for side in (self.when, self.then))
        return f"Implies({when!r}, {then!r})"
