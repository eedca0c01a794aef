-- A range of 1,000 rows, counted
:first = uniform(1, :rows)
:last = :first + 999
SELECT COUNT(c) FROM sbtest2 WHERE id BETWEEN :first AND :last;
