"""Public geometry: the lattice of cells, codes of cells, rulers that cut one column, places of two. PUBLIC."""
