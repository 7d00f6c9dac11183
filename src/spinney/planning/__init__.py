"""What epsilon buys, before anything is spent: a plan from the schema and a number of rows, without a table."""
