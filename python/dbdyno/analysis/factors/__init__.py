"""What each factor of a factorial study does, and whether its effect depends on the others."""
