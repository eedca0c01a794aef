-- A range of 101 values of the primary key, and all that is asked for is in it
:first = uniform(1, :rows)
:last = :first + 100
SELECT id FROM sbtest2 WHERE id BETWEEN :first AND :last;
