"""Distinguishing games on our own mechanisms: lower bounds of epsilon, measured, beside what was claimed."""
