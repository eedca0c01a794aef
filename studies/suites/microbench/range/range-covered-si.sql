-- A range of 101 values of a secondary index, and all that is asked for is in it
:first = uniform(1, :rows)
:last = :first + 100
SELECT k FROM sbtest2 WHERE k BETWEEN :first AND :last;
