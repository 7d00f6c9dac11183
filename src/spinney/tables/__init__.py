"""Whatever a user has, opened and checked: from tables to values and cells. SENSITIVE, and blind to privacy."""
