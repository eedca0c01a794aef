"""What is watched while the load runs: one file per probe."""
