"""How much single synthetic rows make sense beside real ones: measured against wanted.

`python -m benchmarks.sense --data FOLDER --out FOLDER` fits made tables and real ones with forests at epsilon 1,
delta 1e-6, `quality="fast"`, replace-one, and holds drawn rows against the rows that were fitted.

    made.py      made tables with known relations: loans and card holders, and a second, differently made one of each
    tables.py    what is measured: rows to fit, rows to test on, schemas as a new user states them, rules for `--stated`
    limits.py    what is wanted of a release, and which limits are missed
    __main__.py  releases, one line each in FOLDER/results.jsonl; a run goes on where another stopped, so another state
                 of the code wants another folder

Figures of rows are the library's (`spinney.metrics.sense`), and so are distances of columns and classifiers.
Schemas state columns alone; `--stated` states the rules between them as well. Held-out tables are made otherwise than
those that remedies are tuned on, and are measured with `--held-out` alone. `--quick` is a smoke run on few rows.
"""
