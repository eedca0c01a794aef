"""Crash safety in words: what was lost after cuts of the power, or kills of the server, and what to take."""
