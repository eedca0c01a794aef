"""What the host is, as far as results may depend on it. Read only; what can't be known is ``"unknown"``."""
