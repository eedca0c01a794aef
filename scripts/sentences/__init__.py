"""Every sentence that a user can meet, with its place: to be read at once, and held to rules by a test."""
