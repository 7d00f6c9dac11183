"""The paper working: its experiments, the systems it compares with, its theorems. The product never imports this."""
