-- One row by primary key
:id = uniform(1, :rows)
SELECT c FROM sbtest2 WHERE id = :id;
