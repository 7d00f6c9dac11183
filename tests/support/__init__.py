"""What tests lean on: slow twins, sabotaged mechanisms, exact laws, tables that are hard to read."""
