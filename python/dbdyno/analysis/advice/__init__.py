"""What to do after the verdicts: what may be recommended, what that costs in safety, or what is lacking."""
