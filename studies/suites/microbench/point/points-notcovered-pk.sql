-- 100 random values of the primary key; with a column beside it
:values = list(100, uniform(1, :rows))
SELECT id, c FROM sbtest2 WHERE id IN (:values);
