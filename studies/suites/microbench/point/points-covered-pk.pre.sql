-- 100 random values of the primary key, and all they ask for is in it, of a table that nothing has written to since it was loaded
:values = list(100, uniform(1, :rows))
SELECT id FROM sbtest1 WHERE id IN (:values);
