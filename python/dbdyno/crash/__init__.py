"""Power cuts beside the load, and what is found after each; its values are in ``model.cut``."""
