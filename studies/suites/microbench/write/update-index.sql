-- An indexed column of one row
:id = uniform(1, :rows)
UPDATE sbtest2 SET k = k + 1 WHERE id = :id;
