-- 5 rows come at the end of the key and the 5 oldest go, in a transaction each; all indexes are kept.
-- load: after = "insert-50", events = 10000, warmup = "0s"
:seed = uniform(1, 1000000000)
:customer_seed = :seed + 1
:product_seed = :seed + 2
:price_seed = :seed + 3
INSERT INTO sales (sold_at, shop, customer, product, price, note)
  SELECT NOW(6), 1 + FLOOR(RAND(:seed) * 1000), 1 + FLOOR(RAND(:customer_seed) * 100000),
    1 + FLOOR(RAND(:product_seed) * 10000), 1 + FLOOR(RAND(:price_seed) * 50000), REPEAT('n', 10)
  FROM batch WHERE n < 5;
DELETE FROM sales ORDER BY id LIMIT 5;
