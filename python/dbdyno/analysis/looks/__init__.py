"""What it takes to look at data several times: when, and what a p is worth then."""
