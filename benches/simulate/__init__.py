"""The simulated block layer beside a real one."""
