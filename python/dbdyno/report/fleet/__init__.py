"""What is said of the hosts of a study on several."""
