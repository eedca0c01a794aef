-- Three secondary indexes at once.
-- load: after = "fill", events = 1, warmup = "0s"
ALTER TABLE sales
  ADD INDEX by_price (price, customer),
  ADD INDEX by_shop (shop, price, customer),
  ADD INDEX by_time (price, sold_at, customer);
