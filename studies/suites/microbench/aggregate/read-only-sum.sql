-- A range of 1,000 rows, summed up
:first = uniform(1, :rows)
:last = :first + 999
SELECT SUM(k) FROM sbtest2 WHERE id BETWEEN :first AND :last;
