"""Link: which column of one table says to which person of another its rows belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spinney.columns.characters import check_characters
from spinney.errors import SchemaError
from spinney.schema.persons import PersonRows, person_rows
from spinney.shown import brief
from spinney.suggest import did_you_mean

_OPTIONS = ("child", "parent", "most", "order", "steps", "role", "differences")
# What a [person] table calls the same.
_OTHERWISE = {"most_rows": "most", "column": "child"}


class Link:
    """Rows of one table belong to persons of another: `Link("transactions.customer", "customers.id", most=200)`.

    Args:
        child: the table of rows and the column that says whose row it is, with a dot between.
        parent: the table of persons and its key, with a dot between. Both columns are of type `sp.Identifier`.
        most: how many rows of one person are kept at most, a round public number in 1..65535. A larger number adds no
            noise.
        order: the column of `child` by which a person's rows are sorted: numbers, dates or times, never null. By
            default rows are in no order.
        steps: whether each row is a step after the one before, as in a panel: `order` is modelled by its steps.
        role: the category of `child` that says what a row is within its person, such as a relation to the head of a
            household.
        differences: columns of `child` that are modelled by how far they are from the person's first row, such as ages.
    """

    __slots__ = ("child_column", "child_table", "parent_column", "parent_table", "rows")

    def __init__(
        self,
        child: str,
        parent: str,
        *,
        most: int | None = None,
        order: str | None = None,
        steps: bool = False,
        role: str | None = None,
        differences: Iterable[str] = (),
    ) -> None:
        self.child_table, self.child_column = _parted(child, "child", "transactions.customer")
        self.parent_table, self.parent_column = _parted(parent, "parent", "customers.id")
        self.rows: PersonRows = person_rows(self.child_column, most, order, steps, role, differences, about=self.label)

    @property
    def label(self) -> str:
        """What errors call the link."""
        return f"Link({self._ends})"

    @property
    def _ends(self) -> str:
        child, parent = f"{self.child_table}.{self.child_column}", f"{self.parent_table}.{self.parent_column}"
        return f"{child!r}, {parent!r}"

    def to_dict(self) -> dict[str, Any]:
        """The link as plain data for TOML and JSON; what is at its default is left out."""
        described = self.rows.to_dict()
        del described["column"]
        ends = {
            "child": f"{self.child_table}.{self.child_column}",
            "parent": f"{self.parent_table}.{self.parent_column}",
        }
        return {**ends, "most": described.pop("most_rows"), **described}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Link):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.child_table, self.parent_table, self.parent_column, self.rows))

    def __repr__(self) -> str:
        return f"Link({self._ends}, {self.rows.shown(most='most')})"


def link_from_dict(number: int, entry: Any) -> Link:
    """Read what `to_dict` wrote, or one [[links]] table of a TOML file, the `number`-th."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"link {number}: it is not a table; write each link as a table under [[links]]")
    for name in sorted(set(entry) - set(_OPTIONS)):
        raise SchemaError(
            f"link {number}: {name!r} is not an option of a link; it takes {', '.join(_OPTIONS)}"
            f"{did_you_mean(_OTHERWISE.get(name, name), _OPTIONS)}"
        )
    for name in ("child", "parent"):
        if name not in entry:
            raise SchemaError(f'link {number}: {name} is missing, a table and its key such as "customers.id"')
    options = dict(entry)
    try:
        return Link(options.pop("child"), options.pop("parent"), **options)
    except SchemaError as err:
        raise SchemaError(f"link {number}: {err}") from err


def _parted(end: Any, name: str, example: str) -> tuple[str, str]:
    if not isinstance(end, str):
        raise SchemaError(f"Link: {name}={brief(end)} is not a table and its column, such as {example!r}")
    table, _, column = end.partition(".")
    if not table or not column:
        raise SchemaError(f"Link: {name}={brief(end)} is not a table, a dot and its column, such as {example!r}")
    check_characters([end], f"Link: {name} ")
    return table, column
