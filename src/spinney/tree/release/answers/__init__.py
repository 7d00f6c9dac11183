"""Answers of a tree with error bars, from leaf counts and means."""
