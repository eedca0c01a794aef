-- 100 random values of a secondary index, and all they ask for is in it, of a table that nothing has written to since it was loaded
:values = list(100, uniform(1, :rows))
SELECT k FROM sbtest1 WHERE k IN (:values);
