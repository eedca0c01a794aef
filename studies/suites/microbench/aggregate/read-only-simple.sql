-- A range of 1,000 rows, as they come
:first = uniform(1, :rows)
:last = :first + 999
SELECT c FROM sbtest2 WHERE id BETWEEN :first AND :last;
