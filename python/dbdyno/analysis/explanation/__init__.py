"""Why a verdict came out as it did: where the time went, and what limited it."""
