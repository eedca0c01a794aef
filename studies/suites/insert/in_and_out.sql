-- What runs beside the range queries: an event is a row that comes and the oldest one that goes, a transaction each.
:shop = uniform(1, 1000)
:customer = uniform(1, 100000)
:product = uniform(1, 10000)
:price = uniform(1, 50000)
INSERT INTO sales (sold_at, shop, customer, product, price, note)
  VALUES (NOW(6), :shop, :customer, :product, :price, 'nnnnnnnnnn');
DELETE FROM sales ORDER BY id LIMIT 1;
