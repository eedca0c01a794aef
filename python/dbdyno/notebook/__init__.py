"""A run folder for notebooks: its figures as data frames, its verdicts and its charts. Reads, never writes."""
