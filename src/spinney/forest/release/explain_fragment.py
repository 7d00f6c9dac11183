"""An explanation as a notebook shows it: the structure in words, where the budget went, what was counted together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment

if TYPE_CHECKING:
    from spinney.forest.release.explain import Explanation


def explanation_fragment(
    explanation: Explanation, *, title: str = "Explanation of a forest", meaning: str | None = None
) -> str | None:
    """A piece of HTML; None without jinja2."""
    card = explanation.card
    facts = {
        "guarantee": card.guarantee,
        "meaning": explanation.meaning if meaning is None else meaning,
        "target": explanation.target,
        "columns": len(explanation.columns),
    }
    stages = [
        [stage.name, f"{stage.times:,}", f"{100 * stage.share:.1f} %", stage.noise] for stage in explanation.stages
    ]
    cliques = [[clique.label, f"{clique.distance:.3f}", f"{clique.bits:.2f}"] for clique in explanation.cliques]
    columns = [[column.name, column.type, f"{column.n_leaves:,}"] for column in explanation.columns]
    return fragment(
        title,
        facts,
        warnings=card.to_dict()["warnings"],
        tables=[
            Lines("where the budget went", ("stage", "times", "share", "noise"), stages),
            Lines("counted together, strongest first", ("columns", "distance", "bits"), cliques),
            Lines("columns", ("column", "type", "leaves"), columns),
        ],
    )
