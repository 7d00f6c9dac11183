"""Relations: which columns are fixed parts of others, found privately. SENSITIVE up to the noise.

Columns of one kind may be equal in many rows, or one a round percentage of the other, and nobody stated it. Two noisy
vectors find that, and both are charged before any row is read (`relations.proof.md`):

    relations    for every pair of a kind: rows in which the two are equal, or one is a round part of the other
    ratios       for the pairs that stand out: rows by their percentage, and of every column of them rows by the rest
                 that its steps leave, which tells how often a ratio comes about by chance

What is found becomes rules (`Related`), by which the table is then read: from there on it is as if they were stated.
Nulls and zeros are left out. Codes change neither how many columns, trees nor tables there are, so the plan of a forest
does not depend on what was found.

    candidates    pairs that may be looked at, by the schema alone
    counting      true counts of pairs and of percentages. SENSITIVE
    choosing      what stands out of the noise and of chance, and which columns are bases
    finding       both vectors, one after the other
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, Number
from spinney.counting.counts import CellCounts
from spinney.errors import SchemaError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.axes import column_axis
from spinney.schema.rules import AtMost, Related, Rule, clauses_of
from spinney.schema.rules.related import Percentages, ends_in_steps
from spinney.schema.schema import Schema
from spinney.tables.source import Source

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[str, str]  # a column, and what it may be a part of

# ----------------------------------------------------------------------------------------------------------- candidates
# Pairs of columns that may be related, by the schema alone.


# Noise grows with the root of the number of pairs; of kinds with more columns none is looked for.
MOST_PAIRS = 120


def candidates(schema: Schema, barred: Collection[str] = ()) -> tuple[list[Pair], list[str]]:
    """All pairs of columns of one kind, and the columns of kinds that are too large to be looked at.

    A kind is a type and the steps that its values come in. Only columns with a tree can be related: few values agree by
    chance. Those that rules other than orders are about, or `barred`, keep their values; the base of a stated relation
    keeps its own too, and is the second of its pairs: others may be a part of it.
    """
    bases = stated_bases(schema)
    kept = {*barred, *(name for place in schema.places for name in place.columns), *schema._related}
    kept |= {name for rule in schema.rules if not isinstance(rule, (AtMost, Related)) for name in rule.columns}
    kept |= {name for clause in clauses_of(schema.rules, schema) for name in clause}
    kinds: dict[object, list[str]] = defaultdict(list)
    for name, column in schema.items():
        if name not in kept and isinstance(column, Number) and _may_be_related(name, column):
            kinds[column.type_name, column.multiple_of].append(name)
    pairs: list[Pair] = []
    too_many: list[str] = []
    for names in sorted(kinds.values(), key=len):
        more = [
            (second, first) if first in bases else (first, second)
            for first, second in combinations(names, 2)
            if not bases.issuperset((first, second))
        ]
        if len(pairs) + len(more) > MOST_PAIRS:
            too_many += names
        else:
            pairs += more
    return pairs, too_many


def stated_bases(schema: Schema) -> set[str]:
    """The columns that stated relations are to: bases of further ones, and never themselves a part of another."""
    return {rule.base for rule in schema._related.values()}


def _may_be_related(name: str, column: Number) -> bool:
    """Whether cells hold one value each, and steps are counted, without codes, with one, and with as many as there are.

    A plan pays for the steps of a column before it is known whether it gets codes.
    """
    if not column.has_bounds or not _has_grain(name, column):
        return False
    base, rules = f"{name} ", (Related(name, f"{name} "), Percentages(name, f"{name} "))
    columns = {name: column, base: column}
    try:
        for rule in rules:
            rule.check(columns)
    except SchemaError:
        return False
    return all(_has_grain(name, rule.modelled_of(columns)) for rule in rules)


def _has_grain(name: str, column: Column) -> bool:
    axis = column_axis(name, column)
    return axis.ruler is not None and axis.grain is not None


# Parts other than the whole are looked for where values have so many steps: among few, every value is some percentage
# of another, rounded to the next step.
_LEAST_STEPS = 10_000


def has_parts(schema: Schema, pair: Pair) -> bool:
    """Whether one column of a pair may be looked at as a part of the other, and not only as equal to it."""
    ends = [ends_in_steps(column) for name in pair if isinstance(column := schema[name], Number)]
    return all(last - first >= _LEAST_STEPS for first, last in ends)


# ------------------------------------------------------------------------------------------------------------- counting
# True counts, for the prepaid mechanisms alone.


# Percentages that are told apart, and those that are round: what is counted of a pair before it stands out.
_PERCENT = tuple(Fraction(percent, 100) for percent in range(1, 201))
_EVERY, _LAST = 5, 95
# Rows of a column by the rest of its steps, a prime: multiplying by a ratio leaves rests apart.
_N_RESTS = 1021


def true_pairs(table: Source, schema: Schema, pairs: Sequence[Pair]) -> Whole:
    """Rows in which the two columns of a pair are equal, the first is a round part of the second, and the reverse.

    (n_pairs, 3). A row is in one of the three at most. SENSITIVE.
    """
    one = {pair: Related(*pair, ratios=(Fraction(1),)) for pair in pairs}
    rules: dict[Pair, Related] = {}
    for first, second in [pair for pair in pairs if has_parts(schema, pair)]:
        for pair in ((first, second), (second, first)):
            rules[pair] = Percentages(*pair, every=_EVERY, last=_LAST)
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    true_tallies = table.tally(names, [*one.values(), *rules.values()])
    n_rows = table.n_rows
    found = []
    for first, second in pairs:
        equal = n_rows - true_tallies.n_broken[one[first, second]]
        both = [rules.get(pair) for pair in ((first, second), (second, first))]
        parts = [0 if rule is None else n_rows - true_tallies.n_broken[rule] for rule in both]
        found.append([equal, *parts])
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def true_percentages(table: Source, schema: Schema, pairs: Sequence[Pair]) -> Whole:
    """Rows of each pair by the percentage that the first column is of the second (n_pairs, 200). SENSITIVE."""
    found: dict[Pair, Whole] = {}
    waiting = list(pairs)
    while waiting:  # a column is read with the codes of one base at a time, and a base without codes
        chosen: dict[str, str] = {}
        for name, base in waiting:
            if name not in chosen and name not in chosen.values() and base not in chosen:
                chosen[name] = base
        rules = [Percentages(name, base) for name, base in chosen.items()]
        read = Schema({name: schema[name] for name in schema}, rules=rules)
        axes = [column_axis(rule.column, read._modelled[rule.column]) for rule in rules]
        counts = table.with_schema(read._as_read).count_columns([axis.lattice for axis in axes])
        for rule, true_counts in zip(rules, counts, strict=True):
            column = schema[rule.column]
            assert isinstance(column, Number)
            first, last = ends_in_steps(column)
            cells, held = _cells(true_counts)
            code = cells - (last - first + 1)
            is_code = (code >= 0) & (code < len(_PERCENT))
            found[rule.column, rule.base] = np.bincount(code[is_code], held[is_code], len(_PERCENT)).astype(np.int64)
        waiting = [pair for pair in waiting if pair not in found]
    return np.array([found[pair] for pair in pairs], dtype=np.int64).reshape(-1, len(_PERCENT))


def true_rests(table: Source, schema: Schema, names: Sequence[str]) -> Whole:
    """Rows of each column by the rest of its steps, nulls and zeros left out (n_columns, _N_RESTS). SENSITIVE."""
    plain = Schema(dict(schema))
    axes = [column_axis(name, schema[name]) for name in names]
    found = []
    for name, true_counts in zip(
        names, table.with_schema(plain).count_columns([axis.lattice for axis in axes]), strict=True
    ):
        column = schema[name]
        assert isinstance(column, Number)
        first, last = ends_in_steps(column)
        cells, held = _cells(true_counts)
        steps = cells + first
        is_number = (cells <= last - first) & (steps != 0)
        found.append(np.bincount(steps[is_number] % _N_RESTS, held[is_number], _N_RESTS).astype(np.int64))
    return np.array(found, dtype=np.int64)


def _cells(counts: CellCounts) -> tuple[Whole, Whole]:
    """The cells of one column that hold rows, null's far beyond all others, and how many. SENSITIVE."""
    axis = counts.lattice.axes[0]
    codes, held = counts.distinct()
    return (codes[:, 0] >> np.uint64(64 - axis.bits)).astype(np.int64), held.astype(np.int64)


# ------------------------------------------------------------------------------------------------------------- choosing
# What stands out. Sees released numbers only.


# Counts of so many standard deviations of their noise are believed, of pairs and of ratios.
_PAIR_STANDS_OUT, _RATIO_STANDS_OUT = 4.5, 5.0
# Pairs that are looked at more closely: so many by equal rows, so many by round parts.
_MOST_EQUAL, _MOST_PARTS = 8, 6
# A ratio has this share of the rows at least, so many times what chance explains, and what its neighbours have.
_LEAST_SHARE, _ABOVE_CHANCE, _ABOVE_NEIGHBOURS = 0.005, 2.0, 3.0
_NEIGHBOURS = 5
_MOST_RATIOS = 12


def pairs_that_stand_out(
    pairs: Sequence[Pair], noisy: Floats, noise_std: float, bases: Collection[str] = ()
) -> list[Pair]:
    """The pairs to look at more closely, each with what it may be a part of: of stated `bases` none is a part."""
    least = _PAIR_STANDS_OUT * noise_std
    is_part = np.array([[True, True, pair[1] not in bases] for pair in pairs], dtype=np.bool_).reshape(-1, 3)
    noisy = np.where(is_part, noisy, 0.0)
    scores: dict[str, float] = defaultdict(float)
    for pair, counts in zip(pairs, noisy, strict=True):
        for name in pair:
            scores[name] += float(counts[counts > least].sum())
    found: dict[Pair, None] = {}
    for kind, most in ((noisy[:, 0], _MOST_EQUAL), (noisy[:, 1:].max(axis=1, initial=0.0), _MOST_PARTS)):
        n_found = 0
        for at in np.argsort(-kind, kind="stable"):
            first, second = pairs[at]
            if kind[at] <= least or n_found == most:
                break
            parts = np.where(noisy[at, 1:] > least, noisy[at, 1:], 0.0)
            is_reverse = parts[1] > parts[0] if parts.any() else scores[first] > scores[second]
            pair = (second, first) if is_reverse and second not in bases else (first, second)
            if pair not in found:
                found[pair] = None
                n_found += 1
    return list(found)


def ratios_that_stand_out(
    counts: Floats, rests: tuple[Floats, Floats], n_rows: float, noise_std: float, *, parts: bool
) -> dict[Fraction, float]:
    """The ratios of a pair that neither noise, nor chance, nor neighbours, nor one value explain, and the rows of each.

    By chance, a ratio a / b has no more rows than sum over h of H_x(a h / b) H_y(h) / n, where H are rows by the rests
    of steps, modulo a prime: rows with b X = a Y have such rests. One value has min(H_x(a h / b), H_y(h)) at most;
    without the value that may have most, the other rows have to stand out of the noise. A code that several columns
    share makes them equal, so equal rows without it have to stand out of chance and of neighbours too. Without `parts`
    equal values alone are a ratio.
    """
    by_percent = np.zeros(len(_PERCENT) + 1)
    by_percent[[int(ratio * 100) for ratio in _PERCENT]] = counts
    of_column, of_base = rests
    least = max(_RATIO_STANDS_OUT * noise_std, _LEAST_SHARE * n_rows)
    found: dict[Fraction, float] = {}
    for ratio in _PERCENT if parts else (Fraction(1),):
        percent = int(ratio * 100)
        rows = float(by_percent[percent])
        if rows < least:
            continue
        turned = ratio.numerator * pow(ratio.denominator, -1, _N_RESTS) * np.arange(_N_RESTS) % _N_RESTS
        by_chance, of_one_value = of_column[turned] * of_base / max(n_rows, 1.0), np.minimum(of_column[turned], of_base)
        most = int(of_one_value.argmax())
        others, chance = rows - float(of_one_value[most]), float(by_chance.sum())
        compared = rows
        if ratio == 1:
            compared, chance = others, chance - float(by_chance[most])
        near = [p for p in range(percent - _NEIGHBOURS, percent + _NEIGHBOURS + 1) if p % 5 and p != percent]
        beside = max((float(by_percent[p]) for p in near if 1 <= p <= len(_PERCENT)), default=0.0)
        if others >= least and compared > _ABOVE_CHANCE * chance and compared > _ABOVE_NEIGHBOURS * beside:
            found[ratio] = rows
    return dict(sorted(found.items(), key=lambda item: -item[1])[:_MOST_RATIOS])


def chosen_rules(found: Mapping[Pair, Mapping[Fraction, float]], schema: Schema) -> list[Related]:
    """A rule for every column that is related to a base, the strongest first; no base is itself related.

    What stated relations say stays: their columns have a base, and their bases have values of their own.
    """
    scores: dict[str, float] = defaultdict(float)
    for pair, ratios in found.items():
        for name in pair:
            scores[name] += sum(ratios.values())
    rules: list[Related] = []
    columns, bases = {*schema._related}, stated_bases(schema)
    for (name, base), ratios in sorted(found.items(), key=lambda item: -sum(item[1].values())):
        both = [(name, base), (base, name)] if list(ratios) == [Fraction(1)] else [(name, base)]
        for column, other in sorted(both, key=lambda pair: -scores[pair[1]]):
            if column in columns | bases or other in columns:
                continue
            wanted = Related(column, other, ratios=tuple(ratios), found=True)
            rule = _that_goes_with(wanted, [*schema.rules, *rules], schema)
            if rule is not None:
                rules.append(rule)
                columns.add(column)
                bases.add(other)
                break
    return rules


def _that_goes_with(rule: Related, rules: Iterable[Rule], schema: Schema) -> Related | None:
    """The rule, or as many of its ratios as go with orders between columns; None where none do."""
    small = tuple(ratio for ratio in rule.ratios if ratio <= 1)
    for ratios in dict.fromkeys((rule.ratios, small)):
        if not ratios:
            continue
        kept = Related(rule.column, rule.base, ratios=ratios, found=True)
        try:
            Schema(dict(schema), rules=[*rules, kept], places=schema.places)
        except SchemaError:
            continue
        return kept
    return None


# -------------------------------------------------------------------------------------------------------------- finding


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: pairs that follow from the schema, and columns of kinds that are too large."""

    pairs: tuple[Pair, ...]
    too_many: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, barred: Collection[str] = ()) -> Sought:
        pairs, too_many = candidates(schema, barred)
        return cls(tuple(pairs), tuple(too_many))


def find_relations(
    table: Source, schema: Schema, sought: Sought, prepaid: PrepaidMechanisms, *, n_rows: float
) -> Schema:
    """The schema with the relations that were found. `prepaid` has charged for both vectors.

    `n_rows` is public, or was released before.
    """
    factor, pairs = prepaid.plan.unit.factor, sought.pairs
    # [pairs] A row adds 1 to at most one of the three counts of each pair.
    sensitivity = factor * len(pairs)
    noisy = prepaid.noisy_sums(true_pairs(table, schema, pairs).ravel(), sensitivity, "relations").reshape(-1, 3)
    std = math.sqrt(prepaid.plan.vectors["relations"].variance(sensitivity))
    closer = pairs_that_stand_out(pairs, noisy.astype(np.float64), std, stated_bases(schema))
    if not closer:
        return schema
    names = list(dict.fromkeys(name for pair in closer for name in pair))
    true_sums = np.concatenate(
        [true_percentages(table, schema, closer).ravel(), true_rests(table, schema, names).ravel()]
    )
    # [ratios] A row adds 1 to at most one count of each pair, and of each column.
    sensitivity = factor * (len(closer) + len(names))
    noisy = prepaid.noisy_sums(true_sums, sensitivity, "ratios")
    std = math.sqrt(prepaid.plan.vectors["ratios"].variance(sensitivity))
    counts, rests = np.split(noisy.astype(np.float64), [len(closer) * len(_PERCENT)])
    of_column = dict(zip(names, rests.reshape(-1, _N_RESTS), strict=True))
    found = {}
    for (name, base), by_ratio in zip(closer, counts.reshape(-1, len(_PERCENT)), strict=True):
        about = by_ratio, (of_column[name], of_column[base]), n_rows, std
        ratios = ratios_that_stand_out(*about, parts=has_parts(schema, (name, base)))
        if ratios:
            found[name, base] = ratios
    rules = chosen_rules(found, schema)
    return schema._with_rules([*schema.rules, *rules]) if rules else schema
