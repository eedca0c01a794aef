-- One row by primary key, of a table that nothing has written to since it was loaded
:id = uniform(1, :rows)
SELECT c FROM sbtest1 WHERE id = :id;
