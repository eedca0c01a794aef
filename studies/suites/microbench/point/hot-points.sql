-- The same 100 neighbours by primary key
:first = uniform(1, 1)
:ids = list(100, :first)
SELECT c FROM sbtest2 WHERE id IN (:ids);
