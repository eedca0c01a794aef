-- A range of 1,000 rows, sorted, each value once
:first = uniform(1, :rows)
:last = :first + 999
SELECT DISTINCT c FROM sbtest2 WHERE id BETWEEN :first AND :last ORDER BY c;
