"""What happens on a host, in order: preflight, execute, trial, resume, stop."""
