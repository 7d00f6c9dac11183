"""How often intervals hold, and how wide they are, on public tables.

`python -m benchmarks.coverage --data FOLDER --out FOLDER` fits tables of `benchmarks/forest/tables.py` with forests,
and a few of their numeric columns with trees, at epsilon 0.3, 1 and 5, and asks every release the same kinds of
questions. The private table is a sample with replacement of the file, drawn anew for every release, so that the file is
the population and there are two truths: that of the sample and that of the file.

    one column          count of a range or of some values                                            questions.py
    pairs together      count of two conditions on columns that were counted together
    pairs apart         the same of columns that were not
    means together      mean of a number where a column counted with it meets a condition; means apart
    boxes               of trees: counts in boxes of all columns
    quantiles, means    of single columns, over all rows
    whole leaves        counts of single leaves of a tree, and of values of a forest's categories
    regressions         coefficients of regressions that were named before the fit                    truths.py
    other regressions   the same of others with five to eight predictors, from 20 draws

Of every kind, statement and level: the share of intervals that hold, the share of those narrowed to 0.7 that still do
(which has to be less where a statement is tight), and the median width in units of the interval that the private table
itself would give without noise. *Naive* intervals are those that one drawn table gives when it is taken for the real
one. Noise comes from the system: these are fits as a user makes them. One line a release in
FOLDER/results.jsonl; a run goes on where another stopped. FOLDER/coverage.json holds the means.
"""
