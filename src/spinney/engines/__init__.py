"""Engines count: rows become CellCounts here and nowhere else. An engine sees no epsilon and cannot add noise."""
