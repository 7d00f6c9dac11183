"""Persons with many rows: a forest of persons, and a field of rows given persons. SENSITIVE but for `release`."""
