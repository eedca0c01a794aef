-- A range of 101 values of a secondary index, with a column beside it
:first = uniform(1, :rows)
:last = :first + 100
SELECT k, c FROM sbtest2 WHERE k BETWEEN :first AND :last;
