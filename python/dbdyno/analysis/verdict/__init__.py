"""From the ratios inside blocks to the word: evidence, what may mislead of it, and the reason."""
