"""How a report is drawn: a renderer a format, none of which knows a section."""
