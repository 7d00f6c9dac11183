"""A synthesizer as a notebook shows it, before the fit and after it, and what a check of its table found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinney.fragments import Lines, fragment
from spinney.release.card import Card
from spinney.release.fragment import card_fragment
from spinney.shown import is_typed
from spinney.synthesizers.findings import FOR_THE_HOLDER, Finding, Findings

# Characters of a finding that are shown: it ends with the remedy.
_LONGEST = 1_000


def synthesizer_fragment(name: str, parameters: Mapping[str, Any], card: Card | None) -> str | None:
    """A piece of HTML; None without jinja2. Of a parameter that may be a table only the type is shown."""
    if card is not None:
        return card_fragment(card, f"{name}, fitted")
    facts = {key: value if _is_small(value) else f"<a {type(value).__name__}>" for key, value in parameters.items()}
    return fragment(f"{name}, not fitted yet", facts, note="fit(table, schema) spends epsilon, once.")


def findings_fragment(findings: Findings) -> str | None:
    """A piece of HTML; None without jinja2. For the holder only, as the findings are."""
    facts = {
        "verdict": "fit would accept this" if findings.is_clean else "fit would refuse this",
        "rows": None if findings.n_rows is None else f"{findings.n_rows:,}",
        "persons": None if findings.n_persons is None else f"{findings.n_persons:,}",
    }
    for name, n_rows in (findings.tables or {}).items():
        facts[f"rows of {name}"] = "not known" if n_rows is None else f"{n_rows:,}"
    facts["method"] = None if findings.method is None else f"{findings.method}: {findings.reason}"
    return fragment(
        "Check of a table",
        facts,
        warnings=[FOR_THE_HOLDER],
        tables=[
            _found("fault", findings.faults),
            _found("warning", findings.warnings),
            Lines("notes", ("what follows from the schema",), [[note] for note in findings.notes]),
        ],
        note="Nothing was charged.",
    )


def _found(kind: str, found: Sequence[Finding]) -> Lines:
    rows = [[one.message, "-" if one.n_rows is None else f"{one.n_rows:,}"] for one in found]
    return Lines(
        f"{len(rows):,} {kind}{'' if len(rows) == 1 else 's'}", (kind, "rows"), rows, is_open=True, longest=_LONGEST
    )


def _is_small(value: Any) -> bool:
    """Whether a parameter is what somebody types, or a short list of such things."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 20 and all(map(_is_small, value))
    if isinstance(value, Mapping):
        return len(value) <= 20 and all(_is_small(item) for pair in value.items() for item in pair)
    return is_typed(value)
