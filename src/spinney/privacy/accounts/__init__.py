"""Ledgers that are databases: chained entries, the rules that they keep to, and where they are kept."""
