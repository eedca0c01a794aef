"""Two runs against each other, which share no blocks."""
