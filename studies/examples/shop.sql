-- A small shop: most customers look, some buy, a few buy a bundle of two items.
--
--     dbdyno script studies/examples/shop.sql --clients=16 --duration=30 --ignore-errors=1213,1205
--
-- A bundle locks two items in any order, so two of them can deadlock; the one that the server gives
-- up is said again, and both are counted. docs/script.md explains the format.

-- Constants: --set=items=1000000 makes the shop larger.
:items = 100000
:customers = 10000

-- Drawn once per event, for the blocks below that use them.
:item = zipf(1, :items)
:customer = uniform(1, :customers)
:amount = uniform(1, 3)

-- setup:
CREATE TABLE digits (d INT PRIMARY KEY);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE items (
  id INT PRIMARY KEY,
  name VARCHAR(40) NOT NULL,
  price DECIMAL(8, 2) NOT NULL,
  stock INT NOT NULL
);
INSERT INTO items
  SELECT id, CONCAT('item ', id), 1 + id % 1000 / 10, 1000000
  FROM (
    SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS id
    FROM digits a, digits b, digits c, digits e, digits f, digits g
  ) AS numbers
  WHERE id <= :items
  ORDER BY id;
CREATE TABLE orders (
  id BIGINT AUTO_INCREMENT PRIMARY KEY,
  customer INT NOT NULL,
  item INT NOT NULL,
  amount INT NOT NULL,
  paid_by VARCHAR(10) NOT NULL,
  note VARCHAR(80),
  KEY (customer)
);
DROP TABLE digits;

-- name: look  weight: 70
SELECT name, price, stock FROM items WHERE id = :item;

-- name: history  weight: 10
SELECT id, item, amount FROM orders WHERE customer = :customer ORDER BY id DESC LIMIT 10;

-- name: buy  weight: 15
:paid_by = one_of('card': 7, 'transfer': 2, 'cash': 1)
:note = text(0, 80)
BEGIN;
SELECT stock FROM items WHERE id = :item FOR UPDATE;
UPDATE items SET stock = stock - :amount WHERE id = :item;
INSERT INTO orders (customer, item, amount, paid_by, note)
  VALUES (:customer, :item, :amount, :paid_by, :note);
COMMIT;

-- name: bundle  weight: 5
:other = zipf(1, :items)
BEGIN;
-- as: first
UPDATE items SET stock = stock - 1 WHERE id = :item;
-- as: second
UPDATE items SET stock = stock - 1 WHERE id = :other;
COMMIT;
