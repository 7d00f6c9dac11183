"""How close a release is to the table: Spinney's default tree beside the best of others, measured against wanted.

`python -m benchmarks.fidelity [--quick] [--data FOLDER] [--out FOLDER]` compares, at the same epsilon and unit,

    distances   kernel distance on Balog et al.'s mixtures, beside the best figures known for the paper's algorithms
    ranges      range queries on maps, beside uniform grids, adaptive grids and PrivTree
    fitting     time of a fit, beside the tree without moments

Every method gets epsilon and nothing else: its constants are automatic. All noise is seeded, so a run can be repeated.
"""
