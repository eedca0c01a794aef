-- Ten rows of a secondary index, which holds all that is asked for, while 100 rows a second come and 100 go.
-- load: after = "insert-5", duration = "10s"
-- beside: file = "in_and_out.sql", rate = 100
:price = uniform(1, 50000)
:shop = uniform(1, 1000)

-- name: by_price
SELECT price, customer FROM sales FORCE INDEX (by_price)
  WHERE price >= :price ORDER BY price, customer LIMIT 10;

-- name: by_shop
SELECT shop, price, customer FROM sales FORCE INDEX (by_shop)
  WHERE shop = :shop AND price >= :price ORDER BY price, customer LIMIT 10;

-- name: by_time
SELECT price, sold_at, customer FROM sales FORCE INDEX (by_time)
  WHERE price >= :price ORDER BY price, sold_at, customer LIMIT 10;
