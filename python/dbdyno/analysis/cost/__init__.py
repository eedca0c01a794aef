"""What a study's devices come to in money."""
