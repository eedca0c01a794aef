"""Results to share: a run without names, the file that it travels in, and a site of many runs."""
