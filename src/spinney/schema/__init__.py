"""What is public about a table: names, types, bounds, categories, nullability, and the lattice made from them."""
