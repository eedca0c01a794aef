"""``make field-reports``: every study of studies/field-reports run to its end, and a page for each."""
