"""Ledgers of the first version, JSON files, as older versions of Spinney wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spinney.privacy.mechanisms import Event, event_to_dict


def write_version_1(
    path: Path, *, limit: Any = "1", delta: Any = "0", unit: str = "replace-one", events: Iterable[Event] = ()
) -> Path:
    """A ledger file of version 1."""
    described = {
        "format": "spinney-ledger",
        "format_version": 1,
        "unit": unit,
        "limit": limit,
        "delta": delta,
        "events": [event_to_dict(event) for event in events],
    }
    beside = path.with_name(f"{path.name}.new")  # whole or not at all, as the first version wrote it
    beside.write_text(json.dumps(described, indent=2, ensure_ascii=False))
    beside.replace(path)
    return path
