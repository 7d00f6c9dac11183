"""Hostile input by the million: release files, ledger files, schemas, CSV and conditions.

`make fuzz` runs `python -m fuzz` (see `__main__`); `test_fuzz.py` replays the corpus and mutates it a little in every
test run.
"""
