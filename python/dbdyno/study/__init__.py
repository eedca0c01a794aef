"""The study file: schema, loading, units."""
