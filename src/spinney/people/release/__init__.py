"""What was released of persons and their rows, and how both are drawn. PUBLIC."""
