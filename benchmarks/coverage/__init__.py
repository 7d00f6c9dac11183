"""How often intervals hold, how wide they are, and whether drawn rows agree with them.

`python -m benchmarks.coverage --data FOLDER --out FOLDER` fits real tables and made ones with forests, trees and the
synthesizer of persons, at epsilon 0.3, 1 and 5, under both units, and asks every release what people ask first. The
private table is a sample with replacement of a population, drawn anew for every release. Noise comes from the system:
these are fits as a user makes them.

    tables.py     what is measured: populations with schemas as a codebook states them; which are held out
    made.py       made tables whose dependences models of two columns miss, and codes far out
    questions.py  a pool of questions for every table: of one column, of every pair, of boxes
    truths.py     the true answers, and the intervals that a table without noise would give
    trials.py     one release: answers against truths, drawn rows against certified ranges
    results.py    cells and their verdicts: how a share is judged stands there

Kinds of questions end in "together" where the release counted the columns together and in "apart" where it did not.
Every question is asked as it comes; some also with `statement="certified"`, and some of the population. *Naive*
intervals are those that one drawn table gives when it is taken for the real one.

One line a release in FOLDER/results.jsonl; a run goes on where another stopped. FOLDER/coverage.json holds the cells.
Held-out tables are asked with `--held-out` alone. `--quick` is a smoke run on made tables without a folder.
"""
