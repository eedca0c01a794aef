"""The procedures, as arrays in and figures out: tests, intervals, corrections, noise. They know of no run."""
