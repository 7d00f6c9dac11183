"""How faithful the rows are, on public tables of every kind, beside real rows and beside other systems.

`python -m benchmarks.tables --data FOLDER --out FOLDER` measures every table of `benchmarks/forest/tables.py` at
epsilon 0.1, 1 and 10, in every quality, with the target named and without. Four fifths of the rows are fitted, as many
are drawn, and every repetition splits anew. Unit add-remove and delta = 1e-5, unless told. Noise is seeded, so that a
run can be repeated.

    figures      KS, total variation of 1, 2 and 3 columns, queries, correlations, classifiers     figures.py
    floors       the same figures of a bootstrap of the fitted rows, and of classifiers trained on real rows
    rivals       MST and AIM of mbi, in a Python of its own (--mbi-python)                          rivals.py
    results      one line a release in FOLDER/results.jsonl; what is there is not measured again    results.py
    targets      what is wanted of all this, and what was measured before                           targets.py

`python tools/tables_page.py --from FOLDER` puts the figures into docs/explain/fidelity.md.
"""
