"""What the queries stand on: one file per layer, and the journal that puts the host back."""
