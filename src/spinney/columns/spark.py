"""Spark columns as numbers, booleans and strings, where several kinds of columns read them alike."""

from __future__ import annotations

from typing import Any

# Whole numbers of so many digits have 64 bits at most.
_SAFE_DIGITS = 18


def plain(value: Any, kind: Any) -> Any:
    """What Spark holds, with decimals as whole numbers and strings without a collation."""
    name = kind.typeName()
    if name == "decimal":
        return _whole_decimal(value, kind)
    # Texts may come with a collation, under which different texts are equal.
    return value.cast("string") if name in ("string", "char", "varchar") else value


def _whole_decimal(value: Any, kind: Any) -> Any:
    """A decimal as one that surely holds all whole numbers of 64 bits; anything else becomes a half, to be refused."""
    functions = functions_of(value)
    is_whole = value % 1 == 0
    if kind.precision - kind.scale > _SAFE_DIGITS:
        is_whole = is_whole & value.between(-(2**63), 2**63 - 1)
    half = functions.lit(0.5).cast("decimal(20,1)")
    return functions.when(value.isNull() | is_whole, value.cast("decimal(20,1)")).otherwise(half)


def functions_of(value: Any) -> Any:
    """Spark's functions, in the kind that a column or a frame is of."""
    if ".connect." in type(value).__module__:
        from pyspark.sql.connect import functions as remote

        return remote
    from pyspark.sql import functions

    return functions
