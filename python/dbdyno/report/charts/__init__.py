"""What reports draw: SVG from a few marks of our own, and series made small enough for a page."""
