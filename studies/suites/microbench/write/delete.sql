-- One row by primary key, which may be gone already
:id = uniform(1, :rows)
DELETE FROM sbtest2 WHERE id = :id;
