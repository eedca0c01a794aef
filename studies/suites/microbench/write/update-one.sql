-- A column without an index, of one and the same row
:id = uniform(1, 1)
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
UPDATE sbtest2 SET c = :c WHERE id = :id;
