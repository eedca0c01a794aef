-- Ten rows by primary key and four ranges of 10,000 rows in a transaction
:ids = list(10, uniform(1, :rows))
:simple_first = uniform(1, :rows)
:simple_last = :simple_first + 9999
:sum_first = uniform(1, :rows)
:sum_last = :sum_first + 9999
:order_first = uniform(1, :rows)
:order_last = :order_first + 9999
:distinct_first = uniform(1, :rows)
:distinct_last = :distinct_first + 9999
BEGIN;
-- as: point
-- for each: ids
SELECT c FROM sbtest2 WHERE id = :ids;
-- as: simple
SELECT c FROM sbtest2 WHERE id BETWEEN :simple_first AND :simple_last;
-- as: sum
SELECT SUM(k) FROM sbtest2 WHERE id BETWEEN :sum_first AND :sum_last;
-- as: order
SELECT c FROM sbtest2 WHERE id BETWEEN :order_first AND :order_last ORDER BY c;
-- as: distinct
SELECT DISTINCT c FROM sbtest2 WHERE id BETWEEN :distinct_first AND :distinct_last ORDER BY c;
COMMIT;
