-- A column without an index, of one row
:id = uniform(1, :rows)
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
UPDATE sbtest2 SET c = :c WHERE id = :id;
