"""What load is offered: one file per workload."""
