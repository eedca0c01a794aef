-- 10 random rows by primary key
:ids = list(10, uniform(1, :rows))
SELECT c FROM sbtest2 WHERE id IN (:ids);
