"""Factors that are amounts: what a load comes to at each level, and from which level on more brings nothing."""
