"""What everything speaks of, and that speaks of nothing else."""
