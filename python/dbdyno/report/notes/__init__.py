"""The sentences of the section of notes: a file for each thing that they are about."""
