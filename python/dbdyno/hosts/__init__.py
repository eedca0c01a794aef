"""Many hosts: which there are, bringing them up and down, and doing something on one, by ssh."""
