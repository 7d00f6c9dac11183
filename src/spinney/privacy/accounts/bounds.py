"""What bounds new charges and brands, so that everybody can read a ledger and work out what is in it.

A ledger that others write to has to open and to verify for all of them. What is on record from before there were such
bounds, and what is imported, is read all the same. A server keeps to the same bounds by itself (`server/3-events.sql`,
`server/5-charges.sql`): tests compare the two.
"""

from __future__ import annotations

from spinney.errors import ParameterError
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.fields import LONGEST_EVENTS, Fields
from spinney.privacy.accounts.records import events_of
from spinney.privacy.events import ComposedRelease
from spinney.privacy.parts import SMALLEST_COMPOSED_DELTA, TreeShapes

LONGEST_BRAND = 4_000  # bytes
# A release has at most one part for each of the 19 stages that parts have. Three of these are of trees: of columns and
# of columns of rows, with up to 71 levels each (63 bits and 8 to spare), and of places, with up to 62: 204 together.
MOST_PARTS = 64
MOST_LEVELS = 1_024


def check_brand_length(fields: Fields) -> None:
    """Raise where a brand says more than a note does."""
    if len(fields.long_text("events").encode()) > LONGEST_BRAND:
        raise ParameterError(f"a brand is longer than {LONGEST_BRAND:,} bytes; shorten its note")


def check_new_charge(entry: Entry, fields: Fields) -> None:
    """Raise where a charge is longer than a database keeps, or promises what nobody could check."""
    if len(fields.long_text("events").encode()) > LONGEST_EVENTS:
        raise ParameterError(f"events is longer than {LONGEST_EVENTS:,} bytes")
    composed = [event for event in events_of(entry) or () if isinstance(event, ComposedRelease)]
    if any(event.delta < SMALLEST_COMPOSED_DELTA for event in composed):
        raise ParameterError("delta of a composed charge is below 1e-10, which composition cannot promise")
    parts = [part for event in composed for part in event.parts]
    n_levels = sum(part.levels for part in parts if isinstance(part, TreeShapes))
    if len(parts) > MOST_PARTS or n_levels > MOST_LEVELS:
        raise ParameterError(
            f"a charge is composed of more than {MOST_PARTS} parts, or its trees have more than {MOST_LEVELS:,} levels "
            "together; measure less, or charge it in several releases"
        )
