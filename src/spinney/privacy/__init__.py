"""The only room where epsilon is spent and noise is made."""
