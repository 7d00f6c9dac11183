"""A digest of what is public about a table: two tables that state the same have the same one."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from spinney.schema.people import PeopleShape, Tables
from spinney.schema.table import Schema


def schema_digest(stated: Schema | Tables | PeopleShape) -> str:
    """SHA-256 of a schema as it was stated, or of linked ones, in 64 hexadecimal digits."""
    if isinstance(stated, Schema) and stated.person is None:
        described: Any = stated.to_dict()
    else:
        described = (stated if isinstance(stated, PeopleShape) else PeopleShape.of(stated)).to_dict()
    return sha256(json.dumps(described, sort_keys=True, default=str, ensure_ascii=False).encode()).hexdigest()
