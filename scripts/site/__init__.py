"""The documents as a site that needs no network: ``make site`` builds it, and says which link of it is dead."""
