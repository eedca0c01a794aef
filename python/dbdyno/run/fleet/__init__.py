"""A study on several hosts: each runs blocks of its own, which are folded into one run folder here."""
