"""From a released forest to rows, conditions and explanations. PUBLIC."""
