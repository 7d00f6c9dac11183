"""What counts rows where they are: memory, batches of files, Spark. One file for each engine."""
