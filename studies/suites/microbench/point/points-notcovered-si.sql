-- 100 random values of a secondary index; with a column beside it
:values = list(100, uniform(1, :rows))
SELECT k, c FROM sbtest2 WHERE k IN (:values);
