"""Crash safety: what was lost in cuts of the power, or kills of the server, and how much more may be."""
