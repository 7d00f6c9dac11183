"""A card as a notebook shows it, alone, of a release, or of a fitted model: the promise first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.privacy.ledger import Brand, decimal
from spinney.schema.fragment import columns_of, rules_of

if TYPE_CHECKING:
    from spinney.release.card import Card
    from spinney.release.utility import Utility

_FIGURES = "0: alike; 1: nothing in common. The figures have noise of their own and may be published."


def card_fragment(card: Card, title: str = "Card of a release") -> str | None:
    """A piece of HTML; None without jinja2."""
    who = "persons" if card.n_persons is not None or card.unit.endswith("person") else "rows"
    facts = {
        "guarantee": card.guarantee,
        "unit": card.unit,
        who: "private" if card.n_rows is None else f"{card.n_rows:,}",
        "released": card.contents or "nothing",
        "by": f"{card.synthesizer}, spinney {card.spinney_version}",
        "caution": "; ".join(card.cautions),
        "remarks": "; ".join(card.remarks),
    }
    charges = [
        ["no finite one" if isinstance(event, Brand) else decimal(event.epsilon), event.note] for event in card.events
    ]
    figures = [] if card.utility is None else [figures_of(card.utility)]
    return fragment(
        title,
        facts,
        warnings=card.to_dict()["warnings"],
        tables=[
            *figures,
            Lines("charges", ("epsilon", "what"), charges),
            columns_of(card.schema),
            rules_of(card.schema),
        ],
    )


def utility_fragment(utility: Utility) -> str | None:
    """Published figures as a piece of HTML; None without jinja2."""
    return fragment("How far a release is from the private table", {}, tables=[figures_of(utility)], note=_FIGURES)


def figures_of(utility: Utility) -> Lines:
    """The figures as a table."""
    rows = [
        [figure.name, f"{figure.estimate:.4f}", f"{figure.low:.4f} to {figure.high:.4f}", f"{figure.noise_std:.4f}"]
        for figure in utility
    ]
    level = f"{100 * utility.figures[0].level:g} %, {utility.figures[0].statement}"
    heads = ("figure", "estimate", level, "noise, standard deviation")
    return Lines(f"utility: {utility.compared}", heads, rows, is_open=True)
