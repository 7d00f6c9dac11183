"""A card as a notebook shows it, alone, of a release, or of a fitted model: the promise first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.privacy.ledger import Brand, decimal
from spinney.schema.fragment import columns_of, rules_of

if TYPE_CHECKING:
    from spinney.release.card import Card


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
    return fragment(
        title,
        facts,
        warnings=card.to_dict()["warnings"],
        tables=[Lines("charges", ("epsilon", "what"), charges), columns_of(card.schema), rules_of(card.schema)],
    )
