"""How the host is put back: the undo log, one undo for each kind of change, and what a killed process left."""
