"""The honesty benchmark: how often the analysis says what is not so, and how often it misses what is."""
