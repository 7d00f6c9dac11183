"""From the cells of rows to true counts. SENSITIVE, and blind to privacy."""
