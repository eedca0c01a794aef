"""How many power cuts an hour are examined, and whether what is found of them is right."""
