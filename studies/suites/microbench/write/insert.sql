-- A row at the end of the primary key, and anywhere in the secondary index
:k = uniform(1, :rows)
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
:pad = pattern('###########-###########-###########-###########-###########')
INSERT INTO sbtest2 (id, k, c, pad) VALUES (0, :k, :c, :pad);
