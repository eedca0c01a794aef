"""dbdyno: a dynamometer for database servers and the storage they stand on."""

__version__ = "0.1.0"
