"""Pure rendering: terminal tables, Markdown, JSON and HTML."""
