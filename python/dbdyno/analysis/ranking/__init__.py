"""Who is best over several tests, and who is tied."""
