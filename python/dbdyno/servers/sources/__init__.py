"""Where a server product comes from, and what is on this host."""
