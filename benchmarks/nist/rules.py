"""The consistency checks of NIST's scorer as rules of a schema, and how many rows break one without them.

    python -m benchmarks.nist.rules --data FOLDER [--releases N]

fits forests with the rules and without. Children are not married and have no income and no industry; residents of group
quarters are no family and own no home; a family has more persons than children; and so on. The checks are those of
`sdnist` 2.4 and 2.5; the rules also say that a category of industry follows from its code.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.nist.excerpt import TEN, load
from spinney.columns import Bounded, Column
from spinney.schema.rules import Rule

# Where the census's categories of industry begin: 0 is farming, from code 370 on it is 1, mining, ...
_INDUSTRIES = (
    370, 570, 770, 1070, 4070, 4670, 6070, 6470, 6870, 7270, 7860, 7970, 8370, 8561, 8770, 9370, 9670, 9920,
)  # fmt: skip
_NOT_OF_CHILDREN = ("DVET", "MSP", "PINCP", "PINCP_DECILE", "INDP", "INDP_CAT")
_OF_ADULTS = ("MSP", "PINCP", "PINCP_DECILE", "EDU", "DPHY", "DREM")
# A subset in which families are there too.
FAMILIES = ("AGEP", "SEX", "MSP", "RAC1P", "NOC", "NPF", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE")


def rules(columns: Mapping[str, Column]) -> list[Rule]:
    """The rules over these columns of the excerpt."""
    stated: list[Rule] = []

    def state(when: dict[str, object], then: dict[str, object]) -> None:
        if {*when, *then} <= {*columns}:
            stated.append(sp.Implies(when, then))

    # What follows from the code of an industry is not stated of its category too.
    is_derived = {"INDP", "INDP_CAT"} <= {*columns}
    for name in _NOT_OF_CHILDREN:
        if not (is_derived and name == "INDP_CAT"):
            state({"AGEP": (0, 14)}, {name: None})
    state({"AGEP": (0, 2)}, {"EDU": None})
    state({"AGEP": (3, 4)}, {"EDU": [*_codes(columns, "EDU", below=5), None]})
    state({"AGEP": (5, 14)}, {"EDU": [*_codes(columns, "EDU", below=12), None]})
    for name in ("DPHY", "DREM"):
        state({"AGEP": (0, 4)}, {name: None})
    for name in _OF_ADULTS:
        state({"AGEP": (16, None)}, {name: _present(columns, name)})
    for persons in _codes(columns, "NPF"):
        fewer = _codes(columns, "NOC", below=int(persons))
        if len(fewer) < len(_codes(columns, "NOC")):
            state({"NPF": persons}, {"NOC": [*fewer, None]})
    for name in ("NOC", "NPF"):
        state({"HOUSING_TYPE": ["2", "3"]}, {name: None})
        state({"OWN_RENT": "0"}, {name: None})
    state({"HOUSING_TYPE": ["2", "3"]}, {"OWN_RENT": "0"})
    state({"HOUSING_TYPE": "1"}, {"OWN_RENT": ["1", "2"]})
    state({"HOUSING_TYPE": "1"}, {"NOC": _present(columns, "NOC")})
    if is_derived:
        by = {code: str(bisect_right(_INDUSTRIES, int(code))) for code in columns["INDP"].listed}
        stated.append(sp.Derived("INDP_CAT", "INDP", by=by))
    return stated


def _codes(columns: Mapping[str, Column], name: str, below: int | None = None) -> list[str]:
    """The codes of a column, those of smaller numbers only if asked for."""
    listed = columns[name].listed if name in columns else ()
    return [code for code in listed if below is None or int(code) < below]


def _present(columns: Mapping[str, Column], name: str) -> object:
    """The condition that there is a value."""
    column = columns.get(name)
    return (column.low, column.high) if isinstance(column, Bounded) else _codes(columns, name)


# ----------------------------------------------------------------------------------------------------------- counting


def broken(rows: pl.DataFrame) -> dict[str, int]:
    """How many rows break each of NIST's checks, and how many any of them, counted without the rules above."""
    faults: dict[str, pl.Series] = {}

    def fault(name: str, needed: tuple[str, ...], test: Callable[..., pl.Expr]) -> None:
        if {*needed} <= {*rows.columns}:
            columns = [pl.col(each) for each in needed]
            faults[name] = rows.select(test(*columns).fill_null(value=False).alias(name))[name]

    for name in _NOT_OF_CHILDREN:
        fault(f"child_{name}", ("AGEP", name), lambda age, other: (age < 15) & other.is_not_null())
    for name in ("DPHY", "DREM"):
        fault(f"toddler_{name}", ("AGEP", name), lambda age, other: (age < 5) & other.is_not_null())
    for name in _OF_ADULTS:
        fault(f"adult_{name}", ("AGEP", name), lambda age, other: (age > 15) & other.is_null())
    for name, age_below, least in (("child_phd", 15, 12), ("toddler_diploma", 5, 5), ("infant_EDU", 3, 1)):
        fault(
            name,
            ("AGEP", "EDU"),
            lambda age, school, below=age_below, least=least: (age < below) & (school.cast(pl.Int64) >= least),
        )
    fault("too_many_children", ("NOC", "NPF"), lambda noc, npf: noc.cast(pl.Int64) >= npf.cast(pl.Int64))
    fault("invalid_INDP_CAT", ("INDP", "INDP_CAT"), lambda code, group: code.is_null() != group.is_null())
    for name in ("NOC", "NPF"):
        fault(f"gq_{name}", ("HOUSING_TYPE", name), lambda home, other: (home != "1") & other.is_not_null())
    fault("gq_own", ("HOUSING_TYPE", "OWN_RENT"), lambda home, own: (home != "1") & (own != "0"))
    fault("house_OWN_RENT", ("HOUSING_TYPE", "OWN_RENT"), lambda home, own: (home == "1") & (own == "0"))
    fault("house_NOC", ("HOUSING_TYPE", "NOC"), lambda home, noc: (home == "1") & noc.is_null())
    any_fault = np.logical_or.reduce([found.to_numpy() for found in faults.values()])
    return {name: int(found.sum()) for name, found in faults.items()} | {"any": int(any_fault.sum())}


def agreement(real: pl.DataFrame, rows: pl.DataFrame) -> float:
    """Mean over all tables of three columns, ages in eights: 1000 times the part that both have in common."""

    def coded(table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(pl.col("AGEP") // 8).cast(pl.String)

    both = [coded(real), coded(rows)]
    shared = []
    for names in combinations(real.columns, 3):
        one, other = (table.group_by(names).len().with_columns(pl.col("len") / table.height) for table in both)
        joined = one.join(other, on=names, how="inner", nulls_equal=True)
        shared.append(joined.select(pl.min_horizontal("len", "len_right").sum()).item())
    return 1000 * float(np.mean(shared))


def main() -> None:
    """Count what forests break, with the rules and without."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="the folder with national/national2019.csv")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--releases", type=int, default=1)
    options = parser.parse_args()
    for names in (TEN, FAMILIES, None):
        table, columns = load(options.data, names)
        print(f"{len(columns)} columns, real rows: {broken(table)['any']} of {table.height:,} break a check")
        for quality in ("fast", "high"):
            for stated in ([], rules(columns)):
                for _ in range(options.releases):
                    model = sp.ForestSynthesizer(options.epsilon, "1e-6", quality=quality)
                    rows = model.fit(table, sp.Schema(columns, rules=stated)).sample()
                    found = {name: n for name, n in broken(rows).items() if n}
                    told = f"{found.pop('any', 0):,} of {len(rows):,} {found}"
                    more = f" agreement {agreement(table, rows):.1f}" if names else ""
                    print(f"  {quality}, {len(stated)} rules: {told}{more}", flush=True)


if __name__ == "__main__":
    main()
