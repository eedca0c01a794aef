-- A range of 101 values of the primary key, and all that is asked for is in it, of a table that nothing has written to since it was loaded
:first = uniform(1, :rows)
:last = :first + 100
SELECT id FROM sbtest1 WHERE id BETWEEN :first AND :last;
