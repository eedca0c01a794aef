"""Studies on several hosts: what holds on hosts like these, what is fixed to hosts, how much hosts differ."""
