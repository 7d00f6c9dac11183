"""The laws that noise is drawn from, exactly: integers and fractions, never floats."""
