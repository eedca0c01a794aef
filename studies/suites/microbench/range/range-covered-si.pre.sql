-- A range of 101 values of a secondary index, and all that is asked for is in it, of a table that nothing has written to since it was loaded
:first = uniform(1, :rows)
:last = :first + 100
SELECT k FROM sbtest1 WHERE k BETWEEN :first AND :last;
