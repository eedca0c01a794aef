-- A column without an index, of one row, a few rows most often
:id = zipf(1, :rows)
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
UPDATE sbtest2 SET c = :c WHERE id = :id;
