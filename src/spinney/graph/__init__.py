"""Models of many columns: tables of few columns joined in a tree, fitted to released numbers. Sees nothing private."""
