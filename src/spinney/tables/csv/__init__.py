"""CSV files: their format, their header, their lines, and what is wrong with them."""
