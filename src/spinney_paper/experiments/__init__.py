"""The paper's figures and tables: compute, keep as JSON, draw. `spinney paper` runs them.

    framework   what an experiment is, how it runs, resumes and repeats
    results     the records of a run and their file
    catalogue   all experiments in the order of the paper
    drawing, wording    curves with their spread; numbers and tables as Markdown

An experiment compares with the real table, so it is for public and made-up data. Its noise is seeded, so that every
figure can be made again; a release for publication never is.
"""
