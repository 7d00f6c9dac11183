"""From released bins and moments to rows. PUBLIC."""
