"""What is public about NIST's national excerpt: its columns, by the data dictionary, and the rules of its scorer.

    python -m benchmarks.nist.rules --data /path/to/nist_crc

fits forests with the rules and without, and counts rows that break one of NIST's checks. In the excerpt "N" says that a
question does not apply; here that is null. The checks are stated as those of `sdnist` 2.5 (children are not married,
have no income and no industry; residents of group quarters are no family and own no home; ...).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import spinney as sp
from spinney.columns import Column
from spinney.schema.rules import Derivation, Rule

NUMBERS = ("AGEP", "NOC", "NPF", "DENSITY", "INDP", "PINCP", "POVPIP", "PWGTP", "WGTP")
# A subset in which most of the checks are about columns that are there.
TEN = ("AGEP", "SEX", "MSP", "RAC1P", "NOC", "NPF", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE")
_PUMAS = (
    "01-01301", "06-07502", "06-08507", "08-00803", "13-04600", "17-03529", "17-03531", "19-01700", "24-01004",
    "26-02702", "28-01100", "29-01901", "30-00600", "32-00405", "36-03710", "36-04010", "38-00100", "40-00200",
    "51-01301", "51-51255",
)  # fmt: skip
# Where the census's categories of industry begin; what is between two is in the lower one.
_INDUSTRIES = (
    (370, "0"), (570, "1"), (770, "2"), (1070, "3"), (4070, "4"), (4670, "5"), (6070, "6"), (6470, "7"), (6870, "8"),
    (7270, "9"), (7860, "10"), (7970, "11"), (8370, "12"), (8561, "13"), (8770, "14"), (9370, "15"), (9670, "16"),
    (9920, "17"),
)  # fmt: skip


def codes(first: int, last: int) -> list[str]:
    """Codes of a question as strings."""
    return [str(code) for code in range(first, last + 1)]


FEATURES: dict[str, Column] = {
    "PUMA": sp.Category(_PUMAS),
    "AGEP": sp.Integer(0, 99),
    "SEX": sp.Category(codes(1, 2)),
    "MSP": sp.Category(codes(1, 6), nullable=True),
    "HISP": sp.Category(codes(0, 4)),
    "RAC1P": sp.Category(codes(1, 9)),
    "NOC": sp.Integer(0, 19, nullable=True),
    "NPF": sp.Integer(2, 20, nullable=True),
    "HOUSING_TYPE": sp.Category(codes(1, 3)),
    "OWN_RENT": sp.Category(codes(0, 2)),
    "DENSITY": sp.Real(0, 100_000, multiple_of=0.1),
    "INDP": sp.Integer(170, 9920, nullable=True),
    "INDP_CAT": sp.Category(codes(0, 18), nullable=True),
    "EDU": sp.Category(codes(1, 12), nullable=True),
    "PINCP": sp.Integer(-10_000, 2_000_000, nullable=True),
    "PINCP_DECILE": sp.Category(codes(0, 9), nullable=True),
    "POVPIP": sp.Integer(0, 501, nullable=True),
    "DVET": sp.Category(codes(1, 6), nullable=True),
    "DREM": sp.Category(codes(1, 2), nullable=True),
    "DPHY": sp.Category(codes(1, 2), nullable=True),
    "DEYE": sp.Category(codes(1, 2)),
    "DEAR": sp.Category(codes(1, 2)),
    "PWGTP": sp.Integer(1, 9999),
    "WGTP": sp.Integer(0, 9999),
}

_NOT_OF_CHILDREN = ("DVET", "MSP", "PINCP", "PINCP_DECILE", "INDP", "INDP_CAT")
_OF_ADULTS = ("MSP", "PINCP", "PINCP_DECILE", "EDU", "DPHY", "DREM")


def all_rules() -> list[Rule]:
    """Every check as a rule, whatever columns there are; industries follow from their codes."""
    rules: list[Rule] = [sp.Implies({"AGEP": (0, 14)}, {name: None}) for name in _NOT_OF_CHILDREN]
    rules += [
        sp.Implies({"AGEP": (3, 4)}, {"EDU": [*codes(1, 4), None]}),
        sp.Implies({"AGEP": (0, 2)}, {"EDU": None}),
        sp.Implies({"AGEP": (5, 14)}, {"EDU": [*codes(1, 11), None]}),
        *(sp.Implies({"AGEP": (0, 4)}, {name: None}) for name in ("DPHY", "DREM")),
        *(sp.Implies({"AGEP": (16, None)}, {name: _present(FEATURES[name])}) for name in _OF_ADULTS),
    ]
    # A family has at least one person more than children.
    rules += [sp.Implies({"NPF": (2, most)}, {"NOC": [(0, most - 1), None]}) for most in range(2, 20)]
    rules += [
        *(sp.Implies({"HOUSING_TYPE": codes(2, 3)}, {name: None}) for name in ("NOC", "NPF")),
        sp.Implies({"HOUSING_TYPE": codes(2, 3)}, {"OWN_RENT": "0"}),
        sp.Implies({"HOUSING_TYPE": "1"}, {"OWN_RENT": codes(1, 2)}),
        sp.Implies({"HOUSING_TYPE": "1"}, {"NOC": (0, 19)}),
        *(sp.Implies({"OWN_RENT": "0"}, {name: None}) for name in ("NOC", "NPF")),
        sp.Derived(
            "INDP_CAT", "INDP", cuts=[code for code, _ in _INDUSTRIES], labels=[*(n for _, n in _INDUSTRIES), "18"]
        ),
    ]
    return rules


def _present(column: Column) -> object:
    """The condition that there is a value."""
    return list(column.listed) if column.listed else (column.low, column.high)  # type: ignore[attr-defined]


def schema(names: Sequence[str] = tuple(FEATURES), *, has_rules: bool = True) -> sp.Schema:
    """The schema of some columns, with the rules that are about them."""
    known = [rule for rule in all_rules() if set(rule.columns) <= set(names)]
    derived = {rule.column: rule.sources for rule in known if isinstance(rule, Derivation)}
    # What a derived column may be follows from its source, where the rule is stated about that too.
    rules = [
        rule for rule in known if isinstance(rule, Derivation) or not any(name in derived for name in rule.columns)
    ]
    return sp.Schema({name: FEATURES[name] for name in names}, rules=rules if has_rules else ())


def read(folder: str | Path, names: Sequence[str] = tuple(FEATURES)) -> pd.DataFrame:
    """Columns of the excerpt, with null where a question does not apply."""
    table = pd.read_csv(Path(folder) / "national" / "national2019.csv", dtype=str, keep_default_na=False)[list(names)]
    table = table.where(table != "N")
    return pd.DataFrame({name: pd.to_numeric(table[name]) if name in NUMBERS else table[name] for name in names})


def spelt(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows as the excerpt spells them, "N" where a question does not apply."""
    return pd.DataFrame({name: rows[name].astype("string").fillna("N").astype(object) for name in rows})


def broken(rows: pd.DataFrame) -> dict[str, int]:
    """How many rows break each of NIST's checks, and how many any of them, counted without the rules above."""
    has, nothing = set(rows), pd.Series(False, index=rows.index)
    faults: dict[str, pd.Series] = {}

    def fault(name: str, needs: Iterable[str], test: object) -> None:
        if has.issuperset(needs):
            faults[name] = test().fillna(False)  # type: ignore[operator]

    for name in _NOT_OF_CHILDREN:
        fault(f"child_{name}", ["AGEP", name], lambda name=name: (rows.AGEP < 15) & rows[name].notna())
    for name in ("DPHY", "DREM"):
        fault(f"toddler_{name}", ["AGEP", name], lambda name=name: (rows.AGEP < 5) & rows[name].notna())
    for name in _OF_ADULTS:
        fault(f"adult_{name}", ["AGEP", name], lambda name=name: (rows.AGEP > 15) & rows[name].isna())
    if has.issuperset(["AGEP", "EDU"]):
        school = pd.to_numeric(rows.EDU)
        fault("child_phd", ["EDU"], lambda: (rows.AGEP < 15) & (school >= 12))
        fault("toddler_diploma", ["EDU"], lambda: (rows.AGEP < 5) & (school >= 5))
        fault("infant_EDU", ["EDU"], lambda: (rows.AGEP < 3) & school.notna())
    fault("too_many_children", ["NOC", "NPF"], lambda: rows.NOC >= rows.NPF)
    fault("invalid_INDP_CAT", ["INDP", "INDP_CAT"], lambda: rows.INDP.isna() != rows.INDP_CAT.isna())
    group = rows.HOUSING_TYPE.isin(["2", "3"]) if "HOUSING_TYPE" in has else nothing
    house = rows.HOUSING_TYPE == "1" if "HOUSING_TYPE" in has else nothing
    for name in ("NOC", "NPF"):
        fault(f"gq_{name}", ["HOUSING_TYPE", name], lambda name=name: group & rows[name].notna())
    fault("gq_own", ["HOUSING_TYPE", "OWN_RENT"], lambda: group & (rows.OWN_RENT != "0"))
    fault("house_OWN_RENT", ["HOUSING_TYPE", "OWN_RENT"], lambda: house & (rows.OWN_RENT == "0"))
    fault("house_NOC", ["HOUSING_TYPE", "NOC"], lambda: house & rows.NOC.isna())
    any_fault = np.logical_or.reduce([fault.to_numpy(dtype=bool) for fault in faults.values()] or [nothing])
    return {name: int(fault.sum()) for name, fault in faults.items()} | {"any": int(any_fault.sum())}


def agreement(real: pd.DataFrame, rows: pd.DataFrame) -> float:
    """Mean over all tables of three columns, ages in eights: 1000 times what both have in common."""

    def coded(table: pd.DataFrame) -> dict[str, np.ndarray]:
        numbers = {name: table[name] // 8 if name == "AGEP" else table[name] for name in table}
        return {name: column.astype("Float64").fillna(-1).to_numpy(dtype=float) for name, column in numbers.items()}

    both = [coded(real), coded(rows)]
    shared = []
    for names in combinations(real, 3):
        tables = [pd.DataFrame({name: one[name] for name in names}).value_counts(normalize=True) for one in both]
        shared.append(1 - tables[0].sub(tables[1], fill_value=0).abs().sum() / 2)
    return 1000 * float(np.mean(shared))


def main() -> None:
    """Count what forests of ten columns and of all break, with the rules and without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="the folder with national/national2019.csv")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--releases", type=int, default=1)
    options = parser.parse_args()
    for names in (TEN, tuple(FEATURES)):
        table = read(options.data, names)
        print(f"{len(names)} columns, real rows: {broken(table)['any']} of {len(table):,} break a check")
        for has_rules in (False, True):
            for quality in ("fast", "high"):
                for _ in range(options.releases):
                    model = sp.ForestSynthesizer(options.epsilon, "1e-6", quality=quality)
                    rows = model.fit(table, schema(names, has_rules=has_rules)).sample()
                    found = {name: n for name, n in broken(rows).items() if n}
                    told = f"{found.pop('any', 0):,} of {len(rows):,} {found}"
                    if names == TEN:
                        told += f" agreement {agreement(table, rows):.1f}"
                    print(f"  rules={has_rules} quality={quality}: {told}")


if __name__ == "__main__":
    main()
