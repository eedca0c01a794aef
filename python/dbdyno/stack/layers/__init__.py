"""One file a layer, and what each stands on."""
