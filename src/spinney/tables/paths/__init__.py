"""Which files a path, a pattern or a query names, and that none is read twice."""
