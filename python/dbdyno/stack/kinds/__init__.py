"""The kinds of stack, one file each."""
