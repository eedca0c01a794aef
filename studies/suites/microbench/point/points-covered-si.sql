-- 100 random values of a secondary index, and all they ask for is in it
:values = list(100, uniform(1, :rows))
SELECT k FROM sbtest2 WHERE k IN (:values);
