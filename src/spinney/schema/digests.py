"""A digest of what is public about a table: two tables that state the same have the same one."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from spinney.schema.people import PeopleShape, Tables
from spinney.schema.plain import jsonable
from spinney.schema.table import Schema


def schema_digest(stated: Schema | Tables | PeopleShape) -> str:
    """SHA-256 of a schema, or of linked ones, as JSON with sorted keys and no spaces, in 64 hexadecimal digits."""
    if isinstance(stated, Schema) and stated.person is None:
        described: Any = stated.to_dict()
    else:
        described = (stated if isinstance(stated, PeopleShape) else PeopleShape.of(stated)).to_dict()
    text = json.dumps(jsonable(described), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode("ascii")).hexdigest()
