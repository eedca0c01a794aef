"""Results to share (``dbdyno export``, ``import``, ``atlas``): a run without names, its file, a site of many runs."""
