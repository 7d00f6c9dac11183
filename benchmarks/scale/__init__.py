"""What a table of any size costs: time and memory of fits that stream, measured against the engines' own queries.

`python -m benchmarks.scale --folder FOLDER [--rows N] [--only NAME ...] [--out FILE]` generates Parquet files in
a new folder under FOLDER (about 4 GB for 100 million rows), removes them at the end, and measures

    files     a fit of N rows x 5 columns, against min and max of the same columns by polars; peak memory
    duckdb    the same rows as a DuckDB relation; peak memory of the process against DuckDB's configured limit
    cells     N/2 rows that all lie in cells of their own, in memory and with cells spilled to disk; peak memory
    model     seconds a row and a cell: a line fitted to fits of several sizes, over cells that repeat and that do not
    spark     N/5 rows on local[2], against Spark's groupBy().count() of codes made beforehand; needs Java
    forest    a forest of N rows x 20 mixed columns, fast and high, under a limit of memory, against polars' counts of
              values of all columns but floats and times, and min and max of all; peak memory
    forest_spark   the same columns, N/2 rows, on local[2], against Spark's groupBy().count() of each; peak memory of
              the driver's Python process; needs Java
    peers     MST as the package mbi makes it, 1 million rows x 5 columns; only where mbi is installed

Every measurement is a process of its own that fits a small table first, so that nothing is compiled on the clock. What
is compared by time runs three times, fits and queries alike, and the best counts; the first is kept too. Peak memory is
the kernel's account of that whole process. All values lie in [-6, 6], and epsilon is 1.
"""
