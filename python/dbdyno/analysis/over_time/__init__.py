"""Series: what a load did over a trial, and a host over a run."""
