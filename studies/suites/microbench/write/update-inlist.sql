-- A column without an index, of 100 rows
:ids = list(100, uniform(1, :rows))
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
UPDATE sbtest2 SET c = :c WHERE id IN (:ids);
