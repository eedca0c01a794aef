-- 100 random rows by primary key, of a table that nothing has written to since it was loaded
:ids = list(100, uniform(1, :rows))
SELECT c FROM sbtest1 WHERE id IN (:ids);
