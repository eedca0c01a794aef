-- Rows that are only ever added, as in a log.
--
--     dbdyno script studies/examples/visits.sql --clients=8 --duration=10

-- setup:
CREATE TABLE visits (
  id BIGINT PRIMARY KEY,
  page VARCHAR(20) NOT NULL,
  visitor CHAR(36) NOT NULL,
  KEY (page)
);

-- name: visit
:id = sequence()
:page = one_of('home': 6, 'news': 3, 'about': 1)
:visitor = uuid()
INSERT INTO visits VALUES (:id, :page, :visitor);
