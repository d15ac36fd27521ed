-- 1.0 kept an index of the keys that it took over from 0.5.
DROP INDEX idempotency_keys_of_05;
