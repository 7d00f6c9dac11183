"""Many columns: low-dimensional trees, and the choice of what to look at together, joined into one model."""
