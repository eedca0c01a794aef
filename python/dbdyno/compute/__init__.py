"""One function called with many arguments, spread over the processors that there are: here, or wherever a worker is."""
