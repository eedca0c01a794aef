-- The whole table, of which no row is returned
SELECT * FROM sbtest2 WHERE LENGTH(c) < 0;
