"""What a plan spends on other things, what would help, and what nobody can know before the rows are seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinney.forest.design import Design
from spinney.forest.release.budget_report import Stage
from spinney.people.design import PeopleDesign
from spinney.planning.expected import are_even_rows_lost
from spinney.planning.structure import Structure
from spinney.synthesizers.rehearsal import Partition, Rehearsal

# Stages that a call or a schema may do without, and how.
_REMEDIES = {
    "bounds": "state the bounds in the schema, if they are public",
    "values": "list the values in the schema, if they are public",
    "utility": "leave utility_share out, or lower it; figures of utility are then missing, or noisier",
    "analyses": "name fewer regressions, or lower analyses_share",
    "workload": "name fewer tables, or tables of fewer columns",
    "prior": "leave the prior out",
    "classes": "leave the target out, if no column is to be predicted",
}
_WHAT = {
    "bounds": "private bounds",
    "values": "private lists of values",
    "utility": "figures of utility",
    "analyses": "sums of named regressions",
    "workload": "tables that the call names",
    "prior": "choices of where to use the prior",
    "classes": "sizes of the target's classes",
}
# So many columns, or more, make it worth telling what fewer would bring.
_MANY_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """A part of the budget that the rows do not get, and what would save it."""

    stage: str
    what: str
    share: float
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-ready data."""
        return {"stage": self.stage, "what": self.what, "share": float(f"{self.share:.6g}"), "remedy": self.remedy}


def costs(found: Sequence[Stage]) -> tuple[Cost, ...]:
    """What is paid for besides columns and their dependences."""
    return tuple(
        Cost(stage.name, _WHAT[stage.name], stage.share, _REMEDIES[stage.name])
        for stage in found
        if stage.name in _REMEDIES
    )


def hints(rehearsal: Rehearsal, structure: Structure) -> tuple[str, ...]:
    """What would bring more for the same table, the most effective first."""
    found = []
    planned, who = rehearsal.planned, "persons" if rehearsal.unit.is_person else "rows"
    if structure.name == "uniform":
        found.append(f"a larger epsilon, or more {who}: so far nothing is told from noise")
    if isinstance(planned, (Design, PeopleDesign)):
        n_columns = structure.numbers["columns"] + structure.numbers.get("row columns", 0)
        if n_columns >= _MANY_COLUMNS:
            less = "half the noise" if not rehearsal.delta else "about 0.7 times the noise"
            found.append(f"fewer columns: half of the {n_columns} would have {less}")
        if not rehearsal.delta:
            found.append("a delta, such as 1e-6: the noise of many counts grows more slowly with one")
        if structure.name == "tree" and isinstance(planned, Design) and not planned.effort.rounds_per_column:
            found.append('quality="high", if there are enough rows: more pairs, and groups of three, at more time')
    else:
        if are_even_rows_lost(planned, rehearsal.n_rows):
            found.append("a lower threshold, fewer bins or levels, or a larger epsilon: so far most leaves may be lost")
        if planned.lattice.n_axes > 1:
            found.append("fewer columns: every one divides the rows among more leaves")
    return tuple(found)


def unknown(rehearsal: Rehearsal) -> tuple[str, ...]:
    """What the plan follows from, or what the result depends on, and only the rows could tell."""
    found = [
        f"{what}: a stand-in takes its place, and a fit plans anew once it is found" for what in rehearsal.stand_ins
    ]
    planned, who = rehearsal.planned, "persons" if rehearsal.unit.is_person else "rows"
    if isinstance(planned, Partition):
        is_grid = planned.plan.rule == "grid"
        finer = "" if is_grid else ": crowded places are divided more finely than a plan can say"
        found.append(f"how the {who} are spread{finer}")
        found.append(f"how far the rows within a {'cell' if is_grid else 'leaf'} are from what is released of it")
    elif isinstance(planned, PeopleDesign) or planned.structure in ("tree", "rounds"):
        found.append("which columns depend on each other, and so which are counted together")
        found.append("how far the table is from what these tables can say: that error is not noise, and comes on top")
    else:
        found.append("how much columns depend on each other, of which nothing or little would be measured")
    if not rehearsal.unit.n_is_public:
        found.append(
            f"how many {who} there are: give this number as assumed_{who}, or a hundredth of epsilon pays for a noisy "
            "count, which the plan then follows"
        )
    return tuple(found)
