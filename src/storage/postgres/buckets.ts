/** The buckets of rate limits in PostgreSQL, by the database's clock. */
import type { BucketStorage } from "../../domain/storage.ts";
import type { TransactionRunner } from "./transaction.ts";

/** One type throughout, so that no operator from another schema fits better. */
const nowUs = "(extract(epoch FROM now()) * 1000000::numeric)::bigint";

export function createBucketStorage(runner: TransactionRunner): BucketStorage {
  return {
    async pour(pours) {
      // Sorted, so that instances don't deadlock. If the clock was set back, as by a failover to
      // another machine, a bucket holds what it held, without the difference.
      const sorted = pours.toSorted((one, other) => one.key - other.key);
      const { rows } = await runner.write(
        `INSERT INTO rate_buckets (key, poured_at_us, empty_at_us)
           SELECT key, now_us, now_us + level_us
             FROM unnest($1::bigint[], $2::bigint[]) AS poured (key, level_us)
             CROSS JOIN (SELECT ${nowUs} AS now_us) AS clock
           ON CONFLICT (key) DO UPDATE SET
             poured_at_us = excluded.poured_at_us,
             empty_at_us = greatest(excluded.poured_at_us, least(rate_buckets.empty_at_us,
                 excluded.poured_at_us + rate_buckets.empty_at_us - rate_buckets.poured_at_us))
               + excluded.empty_at_us - excluded.poured_at_us
           RETURNING key, empty_at_us - poured_at_us AS level_us`,
        [sorted.map(({ key }) => key), sorted.map(({ levelMs }) => Math.ceil(levelMs * 1_000))],
      );
      return rows.map((row) => ({ key: Number(row.key), levelMs: Number(row.level_us) / 1_000 }));
    },

    async forgetEmpty() {
      await runner.write(`DELETE FROM rate_buckets WHERE empty_at_us < ${nowUs}`);
    },
  };
}
