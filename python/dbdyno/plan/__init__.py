"""From factors to treatments to seeded blocks of trials."""
