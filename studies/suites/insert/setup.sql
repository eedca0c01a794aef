-- A table of sales whose rows come in the order of the key. The steps fill it; `batch` has the rows of the largest
-- transaction.
-- setup:
CREATE TABLE batch (n INT NOT NULL, PRIMARY KEY (n));
INSERT INTO batch VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
INSERT INTO batch SELECT n + 10 FROM batch;
INSERT INTO batch SELECT n + 20 FROM batch;
INSERT INTO batch SELECT n + 40 FROM batch WHERE n < 10;
CREATE TABLE sales (
  id BIGINT NOT NULL AUTO_INCREMENT,
  sold_at DATETIME(6) NOT NULL,
  shop INT NOT NULL,
  customer INT NOT NULL,
  product INT NOT NULL,
  price INT NOT NULL,
  note VARCHAR(40) NOT NULL,
  PRIMARY KEY (id)
);
