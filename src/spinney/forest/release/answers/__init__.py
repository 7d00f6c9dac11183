"""Answers of a forest, with error bars: from its noisy tables, and from its model. Sees released numbers only."""
