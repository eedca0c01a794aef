-- 100 random values of a secondary index; with a column beside it, of a table that nothing has written to since it was loaded
:values = list(100, uniform(1, :rows))
SELECT k, c FROM sbtest1 WHERE k IN (:values);
