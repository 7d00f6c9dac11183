"""Ledgers in the studio: which were opened, and what is on record in one, as plain data. Only `ledger_pages` writes."""
