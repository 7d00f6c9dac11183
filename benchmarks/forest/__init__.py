"""What the forest's rows are worth on mixed tables: measured against wanted, and beside other systems.

`python -m benchmarks.forest [--quick] [--data FOLDER] [--out FOLDER] [--only NAME ...]` measures

    adult, creditcard    marginals and classifiers, against targets; the forest's constants were tuned on these tables
    bank_additional, credit_default_uci              the same, without targets; tuned on these too
    census_income, covtype, kdd99_10pct, diamonds    the same, without targets; nothing was tuned on them
    limits               time, memory, and how time grows with the number of columns, on generated rows
    peers                MST and AIM as the package mbi makes them, on adult; only where mbi is installed

Unit replace-one and delta = 1e-5 throughout, but for the lines that say pure. Bounds are round numbers that anyone
could state. All noise is seeded, so a run can be repeated.
"""
