"""The first atlas: all results that this repository can make without a host of its own, and those that are in runs/."""
