"""What a report says: a file a section, each of which builds its part of the document."""
