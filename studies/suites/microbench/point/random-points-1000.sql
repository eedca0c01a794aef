-- 1000 random rows by primary key
:ids = list(1000, uniform(1, :rows))
SELECT c FROM sbtest2 WHERE id IN (:ids);
