-- 100 random values of the primary key, and all they ask for is in it
:values = list(100, uniform(1, :rows))
SELECT id FROM sbtest2 WHERE id IN (:values);
