"""A synthesizer as a notebook shows it: what it was told before the fit, and the promise after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.fragments import fragment
from spinney.release.card import Card
from spinney.release.fragment import card_fragment
from spinney.shown import is_typed


def synthesizer_fragment(name: str, parameters: Mapping[str, Any], card: Card | None) -> str | None:
    """A piece of HTML; None without jinja2. Of a parameter that may be a table only the type is shown."""
    if card is not None:
        return card_fragment(card, f"{name}, fitted")
    facts = {key: value if _is_small(value) else f"<a {type(value).__name__}>" for key, value in parameters.items()}
    return fragment(f"{name}, not fitted yet", facts, note="fit(table, schema) spends epsilon, once.")


def _is_small(value: Any) -> bool:
    """Whether a parameter is what somebody types, or a short list of such things."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 20 and all(map(_is_small, value))
    if isinstance(value, Mapping):
        return len(value) <= 20 and all(_is_small(item) for pair in value.items() for item in pair)
    return is_typed(value)
