-- Two updates, a delete and an insert in a transaction
:index_id = uniform(1, :rows)
:other_id = uniform(1, :rows)
:new_id = uniform(1, :rows)
:new_k = uniform(1, :rows)
:c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
:new_c = pattern('###########-###########-###########-###########-###########-###########-###########-###########-###########-###########')
:new_pad = pattern('###########-###########-###########-###########-###########')
BEGIN;
-- as: update_index
UPDATE sbtest2 SET k = k + 1 WHERE id = :index_id;
-- as: update_nonindex
UPDATE sbtest2 SET c = :c WHERE id = :other_id;
-- as: delete
DELETE FROM sbtest2 WHERE id = :new_id;
-- as: insert
INSERT INTO sbtest2 (id, k, c, pad) VALUES (:new_id, :new_k, :new_c, :new_pad);
COMMIT;
