"""The command line: one file per verb; only this package prints or exits."""
