"""What happened to a trial that changes how its figures are to be read."""
