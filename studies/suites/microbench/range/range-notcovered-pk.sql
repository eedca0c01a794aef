-- A range of 101 values of the primary key, with a column beside it
:first = uniform(1, :rows)
:last = :first + 100
SELECT id, c FROM sbtest2 WHERE id BETWEEN :first AND :last;
