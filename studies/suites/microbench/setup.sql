-- The tables of sysbench: sbtest1 as it was loaded, sbtest2 as writes all over it have left it. The same seeds on the
-- same server give the same rows.
:rows = 100000                          -- of each table, up to 10 million

-- setup:
CREATE TABLE digits (d INT NOT NULL, PRIMARY KEY (d));
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE sbtest1 (
  id INT NOT NULL AUTO_INCREMENT,
  k INT NOT NULL DEFAULT 0,
  c CHAR(120) NOT NULL DEFAULT '',
  pad CHAR(60) NOT NULL DEFAULT '',
  PRIMARY KEY (id)
);
INSERT INTO sbtest1 (id, k, c, pad)
  SELECT n + 1, 1 + FLOOR(RAND(16) * :rows),
    CONCAT_WS('-', LPAD(FLOOR(RAND(1) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(2) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(3) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(4) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(5) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(6) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(7) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(8) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(9) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(10) * 100000000000), 11, '0')),
    CONCAT_WS('-', LPAD(FLOOR(RAND(11) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(12) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(13) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(14) * 100000000000), 11, '0'),
      LPAD(FLOOR(RAND(15) * 100000000000), 11, '0'))
  FROM (
    SELECT g.d * 1000000 + f.d * 100000 + e.d * 10000 + d.d * 1000 + c.d * 100 + b.d * 10 + a.d AS n
    FROM digits g, digits f, digits e, digits d, digits c, digits b, digits a
    WHERE g.d * 1000000 < :rows AND g.d * 1000000 + f.d * 100000 < :rows
  ) numbers
  WHERE n < :rows
  ORDER BY n;
ALTER TABLE sbtest1 ADD INDEX k_1 (k);

-- Half of the rows get another k, a fifth are deleted and come back in the order of k.
CREATE TABLE sbtest2 (
  id INT NOT NULL AUTO_INCREMENT,
  k INT NOT NULL DEFAULT 0,
  c CHAR(120) NOT NULL DEFAULT '',
  pad CHAR(60) NOT NULL DEFAULT '',
  PRIMARY KEY (id)
);
INSERT INTO sbtest2 SELECT * FROM sbtest1 ORDER BY id;
ALTER TABLE sbtest2 ADD INDEX k_2 (k);
UPDATE sbtest2 SET k = 1 + FLOOR(RAND(17) * :rows) WHERE RAND(18) < 0.5;
DELETE FROM sbtest2 WHERE RAND(19) < 0.2;
INSERT IGNORE INTO sbtest2 SELECT * FROM sbtest1 ORDER BY k;
DROP TABLE digits;
ANALYZE TABLE sbtest1, sbtest2;

-- connect:
-- All pages are read once, so that each load begins with them in memory.
DO (SELECT COUNT(c) FROM sbtest1 FORCE INDEX (PRIMARY));
DO (SELECT COUNT(k) FROM sbtest1 FORCE INDEX (k_1));
DO (SELECT COUNT(c) FROM sbtest2 FORCE INDEX (PRIMARY));
DO (SELECT COUNT(k) FROM sbtest2 FORCE INDEX (k_2));
