"""How faithful tables are whose persons have many rows, beside what a holder could do without persons.

`python -m benchmarks.people --data FOLDER --out FOLDER` reads FOLDER/people/*.parquet (or FOLDER/*.parquet), makes
`shop` and `homes` itself, fits four fifths of the persons at epsilon 5 and 1 (unit: replace one person, delta = 1e-5)
and measures the synthetic rows against **all** rows of all fitted persons, also those that a limit had cut.

    linked         `sp.LinkedSynthesizer`
    no-levels      the same without hidden levels of persons
    one-row        one random row a person, its person's columns joined, `sp.ForestSynthesizer`       rivals.py
    5-rows ...     at most k random rows a person, the same with noise for k of them
    mst-10-rows    MST of mbi on such a table (`aim-10-rows`: AIM), where --mbi-python names a Python that has mbi
    real           one half of the fitted persons against the other: what sampling alone gives

    figures        one- and two-way tables of rows, of persons and between them, rows a person       figures.py
                   intra-class correlation, transitions, keys and order                              dependence.py
                   AUC of a person's label from aggregates of the rows                               labels.py
                   dependence between members of households                                         households.py
    tables         cdnow, lahman, nafld of files; shop, shop-one, shop-ten, homes made up  tables.py, shop.py, homes.py
    scale, large   100,000 persons with ten rows of eight columns; 10 million rows in Parquet files  scale.py
    large-spark    the same files by Spark

Noise is seeded, so that a run can be repeated. One line a release in FOLDER/results.jsonl; a run goes on where another
stopped. Where keys, counts, order or absorbing states are broken, or a target is missed, the exit status is 1.
"""
