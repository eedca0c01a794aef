"""The operating system underneath: child processes, signals, clocks, locks, the state folder, files."""
