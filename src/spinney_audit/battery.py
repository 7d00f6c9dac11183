"""Which games are played: a standard battery, or one with the very plan and charges of a release.

Games are named by family and made where they are played (`audit.py`), so what travels between processes is
text: a `Spec` is the name of a maker and its arguments.

    specs       families, `Spec`, and the maker of every game
    standard    every mechanism at an epsilon of 1, and fits at larger ones
    a release   the whole mechanism of a release at its epsilon, and each of its charges
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import (
    ComposedRelease,
    DiscreteLaplaceCounts,
    Event,
    GaussianTables,
    GaussianVector,
    LeafMoments,
    Part,
    PartitionSelection,
    Selection,
    Selections,
    SplitDecisions,
    TreeShapes,
    WeightedTables,
    event_to_dict,
    part_from_dict,
)
from spinney.release.card import Card
from spinney.text import did_you_mean
from spinney_audit.forest_games import (
    AnswerGame,
    BoundsGame,
    ChoiceGame,
    CliqueGame,
    ColumnGame,
    FiguresGame,
    ProductsGame,
    PureTableGame,
    RowCountGame,
    StructureGame,
    TableGame,
    ValuesGame,
    VectorGame,
)
from spinney_audit.game import Game
from spinney_audit.tree_games import (
    CellGame,
    ColumnTreeGame,
    EmptyCellGame,
    EmptyTreeGame,
    MixedMomentsGame,
    MomentsGame,
    charged_game,
    empty_means_game,
    paper_game,
    privtree_game,
)
from spinney_audit.whole_games import AlikenessGame, ForestFitGame, PeopleFitGame, TreeFitGame, WeightedGame

FAMILIES = (
    "counts",
    "empty space",
    "decisions",
    "leaf moments",
    "private bounds",
    "private lists",
    "number of rows",
    "bought answers",
    "utility figures",
    "tables",
    "columns",
    "column trees",
    "selections",
    "vectors",
    "persons' tables",
    "alikeness",
    "whole tree",
    "whole forest",
    "whole persons",
)


# Columns of made-up tables that are fitted as a release was: more make a fit slower, and so a game weaker.
_MOST_AXES, _MOST_COLUMNS = 3, 4
# Rows or persons of whom counts stand out of their noise at this epsilon; of a smaller one there have to be more.
_N_ROWS, _EPSILON_OF_ROWS = 200, 5
_N_PERSONS, _EPSILON_OF_PERSONS = 30, 14
# Of more of them a fit takes so long that no game of whole fits could tell anything.
_MOST_MADE_UP = 200_000


@dataclass(frozen=True, slots=True)
class Spec:
    """A game that can be made anywhere. `weight` is its share of the time beside others."""

    maker: str
    family: str
    unit: str
    settings: dict[str, Any]
    weight: float = 1.0

    def make(self) -> Game:
        """The game."""
        return _MAKERS[self.maker](Unit.parse(self.unit), **self.settings)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "maker": self.maker,
            "family": self.family,
            "unit": self.unit,
            "settings": self.settings,
            "weight": self.weight,
        }


def _parts(described: Iterable[dict[str, Any]]) -> list[Any]:
    return [part_from_dict(one) for one in described]


def _one(described: dict[str, Any]) -> Any:
    return part_from_dict(described)


# Every maker takes a unit and plain text and numbers.
_MAKERS: dict[str, Callable[..., Game]] = {
    "cells": lambda unit, epsilon, few=False, threshold=1: CellGame(
        unit, Fraction(epsilon), few=few, threshold=threshold
    ),
    "empty cells": lambda unit, epsilon: EmptyCellGame(unit, Fraction(epsilon)),
    "empty trees": lambda unit, epsilon, rule: EmptyTreeGame(unit, Fraction(epsilon), rule),
    "privtree": lambda unit, epsilon, counts=None, **rest: privtree_game(
        unit, Fraction(epsilon), counts=None if counts is None else Fraction(counts), **rest
    ),
    "empty means": lambda unit, epsilon: empty_means_game(unit, Fraction(epsilon)),
    "paper": lambda unit, epsilon, **rest: paper_game(unit, Fraction(epsilon), **rest),
    "charged decisions": lambda unit, epsilon, rate, **rest: charged_game(
        unit, Fraction(epsilon), rate=Fraction(rate), **rest
    ),
    "moments": lambda unit, epsilon: MomentsGame(unit, Fraction(epsilon)),
    "mixed moments": lambda unit, epsilon, **rest: MixedMomentsGame(unit, Fraction(epsilon), **rest),
    "bounds": lambda unit, epsilon: BoundsGame(unit, Fraction(epsilon)),
    "values": lambda unit, epsilon, delta: ValuesGame(unit, Fraction(epsilon), Fraction(delta)),
    "rows": lambda unit, epsilon: RowCountGame(Fraction(epsilon), unit),
    "answer": lambda unit, epsilon, is_mean: AnswerGame(unit, Fraction(epsilon), is_mean=is_mean),
    "figures": lambda unit, epsilon: FiguresGame(unit, Fraction(epsilon)),
    "table": lambda unit, part, **rest: TableGame(_one(part), unit, **rest),
    "pure table": lambda unit, epsilon: PureTableGame(unit, Fraction(epsilon)),
    "clique": lambda unit, part: CliqueGame(_one(part), unit),
    "column": lambda unit, parts: ColumnGame(_parts(parts), unit),
    "column tree": lambda unit, part: ColumnTreeGame(_one(part), unit),
    "choice": lambda unit, epsilon: ChoiceGame(Fraction(epsilon), unit),
    "structure": lambda unit, epsilon: StructureGame(Fraction(epsilon), unit),
    "vector": lambda unit, part, **rest: VectorGame(_one(part), unit, **rest),
    "products": lambda unit, part: ProductsGame(_one(part), unit),
    "weighted": lambda unit, part, **rest: WeightedGame(_one(part), unit, **rest),
    "alikeness": lambda unit, part, **rest: AlikenessGame(_one(part), unit, **rest),
    "tree fit": TreeFitGame,
    "forest fit": ForestFitGame,
    "people fit": PeopleFitGame,
}


def checked_families(families: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names of families, or a ParameterError that lists them."""
    if families is None:
        return FAMILIES
    asked = (families,) if isinstance(families, str) else tuple(families)
    for name in asked:
        if name not in FAMILIES:
            raise ParameterError(
                f"family {name!r} is not one of {', '.join(FAMILIES)}{did_you_mean(str(name), FAMILIES)}"
            )
    return asked


# ------------------------------------------------------------------------------------------------------------- standard
# The standard battery: every mechanism with made-up parameters, and whole fits.


def standard(families: Sequence[str], *, black_box: bool = False) -> list[Spec]:
    """Every mechanism at an epsilon of 1, or at the mu of a table with most of (1, 1e-6); fits at larger ones."""
    if black_box:
        return _chosen(_whole_fits(black_box=True), families)
    specs: list[Spec] = []
    for unit in (Unit.ADD_REMOVE, Unit.REPLACE_ONE):
        specs += _standard_rows(unit)
    for unit in (Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON):
        specs += _of_part(WeightedTables(Fraction(1, 4), 1, note="audit", stage="row tables"), unit, weight=1)
        specs += _of_part(GaussianVector(Fraction(1, 4), note="audit", stage="alikeness"), unit, weight=1)
    return _chosen([*specs, *_whole_fits(black_box=False)], families)


def _standard_rows(unit: Unit) -> list[Spec]:
    name = unit.value
    specs = [
        Spec("cells", "counts", name, {"epsilon": "1"}, 0.7),
        Spec("cells", "counts", name, {"epsilon": "1", "few": True}, 0.5),
        Spec("empty cells", "empty space", name, {"epsilon": "1"}, 0.7),
        Spec("empty trees", "empty space", name, {"epsilon": "1", "rule": "privtree"}, 0.5),
        Spec("empty trees", "empty space", name, {"epsilon": "1", "rule": "paper"}, 0.5),
        Spec("privtree", "decisions", name, {"epsilon": "1"}, 0.7),
        Spec("privtree", "decisions", name, {"epsilon": "1", "low": True}),
        Spec("privtree", "decisions", name, {"epsilon": "1", "moments_too": True}, 1.5),
        Spec("empty means", "empty space", name, {"epsilon": "1"}, 0.5),
        Spec("paper", "decisions", name, {"epsilon": "1"}, 0.7),
        Spec("moments", "leaf moments", name, {"epsilon": "1"}, 0.7),
        Spec("mixed moments", "leaf moments", name, {"epsilon": "4", "depth": 2}, 1.5),
        Spec("bounds", "private bounds", name, {"epsilon": "1"}, 4),
        Spec("values", "private lists", name, {"epsilon": "1", "delta": "1e-6"}, 0.7),
        Spec("answer", "bought answers", name, {"epsilon": "1", "is_mean": False}),
        Spec("answer", "bought answers", name, {"epsilon": "1", "is_mean": True}),
        Spec("figures", "utility figures", name, {"epsilon": "1"}),
        Spec("pure table", "tables", name, {"epsilon": "1"}, 0.5),
        Spec("choice", "selections", name, {"epsilon": "1"}, 2),
        Spec("structure", "selections", name, {"epsilon": "4"}, 3),
    ]
    if not unit.n_is_public:
        specs.append(Spec("rows", "number of rows", name, {"epsilon": "1"}))
    one_way = _gaussian("one-way", unit, Fraction(1, 2))
    spikes = _gaussian("spikes", unit, Fraction(1, 4))
    specs += _of_part(one_way, unit)
    specs.append(Spec("column", "columns", name, {"parts": [event_to_dict(one_way), event_to_dict(spikes)]}, 3))
    specs.append(Spec("clique", "tables", name, {"part": event_to_dict(_gaussian("cliques", unit, Fraction(1)))}, 1.5))
    from spinney.tree.bins import decay_for

    rate = Fraction(2, 5)
    specs += _of_part(TreeShapes(rate, decay_for(rate), 14, 1, note="audit", stage="trees"), unit)
    vector = GaussianVector(Fraction(1, 4), note="audit", stage="products")
    return [*specs, *_of_part(vector, unit)]


def _gaussian(stage: Any, unit: Unit, mu: Fraction) -> GaussianTables:
    return GaussianTables(unit.factor / mu**2, 1, note="audit", stage=stage)


def _whole_fits(*, black_box: bool) -> list[Spec]:
    """Fits at epsilons with which the few that there is time for say most: those of persons take longest."""
    specs = []
    for unit in (Unit.ADD_REMOVE, Unit.REPLACE_ONE):
        name, common = unit.value, {"black_box": black_box}
        specs += [
            Spec("tree fit", "whole tree", name, {"epsilon": "4", **common}, 2),
            Spec("tree fit", "whole tree", name, {"epsilon": "4", "moments": False, **common}, 2),
            Spec("forest fit", "whole forest", name, {"epsilon": "10", "delta": "1e-6", **common}, 8),
        ]
        if not black_box:
            together = {"epsilon": "1", "counts": "1"}
            specs.append(Spec("privtree", "whole tree", name, together, 0.7))
            specs.append(Spec("privtree", "whole tree", name, {**together, "few": True}, 1))
    specs += [
        Spec("people fit", "whole persons", unit.value, {"epsilon": "14", "delta": "1e-6", "black_box": black_box}, 30)
        for unit in (Unit.ADD_REMOVE_PERSON, Unit.REPLACE_PERSON)
    ]
    return specs


# ------------------------------------------------------------------------------------------------------------ a release
# The battery of a release: its whole mechanism, and each part with the numbers of its charges, in its unit.


def of_release(card: Card, families: Sequence[str]) -> list[Spec]:
    """The whole mechanism of a release at its epsilon, and each part with the numbers of its charges, in its unit.

    The whole comes first, and has as much time as all parts together.
    """
    unit = Unit.parse(card.unit)
    specs: list[Spec] = []
    for event in card.events:
        specs += _of_event(event, unit, card)
    unique = {repr(spec.to_dict()): spec for spec in specs}
    parts = _chosen(list(unique.values()), families)
    whole = _chosen(_whole_of(card, unit), families)
    found = [replace(spec, weight=max(sum(part.weight for part in parts), 1.0)) for spec in whole] + parts
    if not found:
        raise ParameterError("the release has no charge that a game of these families could be played about")
    return found


def _whole_of(card: Card, unit: Unit) -> list[Spec]:
    """A fit of made-up tables by the method of a release, at its whole epsilon and delta.

    The tables have as many columns as the release, up to a few, all of one kind; what bounds, values and a number of
    rows cost goes to the rest.
    """
    n_columns, epsilon = len(card.schema._modelled), {"epsilon": str(card.epsilon)}
    delta = {"delta": str(card.delta)}
    kinds = {"KDTreeSynthesizer": "tree", "PaperTreeSynthesizer": "paper", "GridSynthesizer": "grid"}
    if card.synthesizer in kinds and not card.delta:
        has_moments = any(isinstance(event, LeafMoments) and event.stage != "utility" for event in card.events)
        bins = {} if has_moments else {"threshold": 1}
        kind = {"kind": kinds[card.synthesizer], "moments": has_moments, "n_columns": min(n_columns, _MOST_AXES)}
        return [Spec("tree fit", "whole tree", unit.value, {**epsilon, **kind, **bins})]
    if card.synthesizer == "ForestSynthesizer":
        n_rows = max(_N_ROWS, math.ceil(_EPSILON_OF_ROWS * _N_ROWS / card.epsilon))
        table = {"n_columns": min(max(n_columns, 2), _MOST_COLUMNS), "n_rows": n_rows}
        whole = Spec("forest fit", "whole forest", unit.value, {**epsilon, **delta, **table})
        return [whole] if n_rows <= _MOST_MADE_UP else []
    if card.synthesizer == "LinkedSynthesizer":
        n_persons = max(_N_PERSONS, math.ceil(_EPSILON_OF_PERSONS * _N_PERSONS / card.epsilon))
        whole = Spec("people fit", "whole persons", unit.value, {**epsilon, **delta, "n_persons": n_persons})
        return [whole] if n_persons <= _MOST_MADE_UP else []
    return []


def _of_event(event: Event, unit: Unit, card: Card) -> list[Spec]:
    name = unit.value
    if isinstance(event, ComposedRelease):
        return [spec for part in event.parts for spec in _of_part(part, unit)] + _column_of(event.parts, unit)
    if isinstance(event, DiscreteLaplaceCounts):
        each = str(event.epsilon / (event.times or 1))
        if event.stage == "rows":
            return [Spec("rows", "number of rows", name, {"epsilon": each})]
        if event.stage == "bounds":
            return [Spec("bounds", "private bounds", name, {"epsilon": each})]
        if event.stage == "leaves" or event.stage is None:
            threshold = int(card.design.get("threshold", 1))
            cells = {"epsilon": each, "threshold": threshold}
            return [Spec("cells", "counts", name, cells), Spec("empty cells", "empty space", name, {"epsilon": each})]
        return [Spec("pure table", "tables", name, {"epsilon": each})]
    if isinstance(event, LeafMoments) and event.stage == "utility":
        return [Spec("figures", "utility figures", name, {"epsilon": str(event.epsilon)})]
    if isinstance(event, LeafMoments):
        return [Spec("moments", "leaf moments", name, {"epsilon": str(event.epsilon)})]
    if isinstance(event, SplitDecisions):
        return _of_decisions(event, unit)
    if isinstance(event, Selection):
        each = str(event.epsilon / (event.times or 1))
        return [Spec(maker, "selections", name, {"epsilon": each}, 2) for maker in ("choice", "structure")]
    if isinstance(event, PartitionSelection):
        settings = {"epsilon": str(event.epsilon), "delta": str(event.delta)}
        return [Spec("values", "private lists", name, settings)]
    return []  # brands cost nothing and promise nothing


def _of_decisions(event: SplitDecisions, unit: Unit) -> list[Spec]:
    each = event.epsilon / (event.times or 1)
    if event.stage in ("trees", "regions"):
        part = TreeShapes(event.rate, event.decay or 1, event.levels, 1, note="audit", stage=event.stage)
        return _of_part(part, unit)
    settings = {
        "epsilon": str(each),
        "rule": event.rule,
        "rate": str(event.rate),
        "levels": event.levels,
        "decay": event.decay or 0,
    }
    starts = (True,) if event.rule == "paper" else (False, True)
    return [Spec("charged decisions", "decisions", unit.value, {**settings, "low": low}) for low in starts]


def _of_part(part: Part, unit: Unit, weight: float = 1.0) -> list[Spec]:
    name, described = unit.value, event_to_dict(part)
    if isinstance(part, GaussianTables):
        return [
            Spec("table", "tables", name, {"part": described}, weight),
            Spec("table", "tables", name, {"part": described, "packed": False}, weight),
        ]
    if isinstance(part, TreeShapes):
        return [Spec("column tree", "column trees", name, {"part": described}, weight)]
    if isinstance(part, Selections):
        return [Spec("choice", "selections", name, {"epsilon": str(part.epsilon)}, 2 * weight)]
    if isinstance(part, WeightedTables):
        alone = {"part": described, "packed": False}
        specs = [Spec("weighted", "persons' tables", name, {"part": described}, 0.7)]
        return [*specs, Spec("weighted", "persons' tables", name, alone, weight)]
    if part.stage == "alikeness":
        return [
            Spec("alikeness", "alikeness", name, {"part": described, "packed": True}, 0.7),
            Spec("alikeness", "alikeness", name, {"part": described}, weight),
        ]
    specs = [
        Spec("vector", "vectors", name, {"part": described, "packed": True}, 0.7),
        Spec("vector", "vectors", name, {"part": described}, weight),
    ]
    if part.stage == "products":
        specs.append(Spec("products", "vectors", name, {"part": described}, 2 * weight))
    return specs


def _column_of(parts: Sequence[Part], unit: Unit) -> list[Spec]:
    """The tables of one column together, where it has both."""
    by_stage = {part.stage: event_to_dict(part) for part in parts if isinstance(part, GaussianTables)}
    if not {"one-way", "spikes"} <= by_stage.keys():
        return []
    return [Spec("column", "columns", unit.value, {"parts": [by_stage["one-way"], by_stage["spikes"]]}, 3)]


def _chosen(specs: Sequence[Spec], families: Sequence[str]) -> list[Spec]:
    return [spec for spec in specs if spec.family in families]
