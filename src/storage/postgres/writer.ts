/**
 * Applies a group of writes to PostgreSQL, in one of two ways. Every write to a garden locks its
 * row first, so instances take turns.
 *
 * | group                                         | statements                                                | decided by        |
 * |-----------------------------------------------|-----------------------------------------------------------|-------------------|
 * | creates without ids, none of a bulk with keys | one (`plain-creates.ts`)                                  | the statement     |
 * | any other, and what the statement refused     | a transaction of two round trips (`group-transaction.ts`) | `domain/rules.ts` |
 *
 * A transaction can pass over gardens that another process holds. The statement can't: its INSERT
 * waits. In a group, it waits for a moment only, then leaves the group to the transaction.
 */
import type { Outcome, PlantStorage, Write } from "../../domain/ports.ts";
import {
  type ForgottenEvents,
  forgetEvents,
  forgetEventsStatement,
  forgottenMax,
  oldestEventsStatement,
} from "../event-cleanup.ts";
import { storageError } from "../failures.ts";
import type { WriterOptions } from "../storage.ts";
import { isLocked } from "./errors.ts";
import { applyInTransaction, type IfHeld } from "./group-transaction.ts";
import { arePlain, isRefusal, preparePlainCreates } from "./plain-creates.ts";
import type { TransactionRunner } from "./transaction.ts";

/** In the shared group: how long the statement waits for a held garden, before the others go on. */
const groupWaitMs = 50;
/** In a lane: how long one try waits, before another garden gets the connection. */
const laneWaitMs = 1_000;
/** The same if there is only one connection. */
const laneWaitOnlyConnectionMs = 100;
/** After the wait for a garden, how long its commit may take. */
const commitMs = 4_000;

export function createWriter(
  runner: TransactionRunner,
  options: WriterOptions,
): Pick<PlantStorage, "apply" | "contended" | "forgetKeys" | "forgetEvents"> {
  const createPlain = preparePlainCreates(runner, options);
  // A wait ends before its statement does.
  const waitMsMax = runner.statementTimeoutMs / 2;
  const tryMsMax = Math.min(
    waitMsMax,
    runner.hasOneConnection ? laneWaitOnlyConnectionMs : laneWaitMs,
  );

  /** If one statement isn't enough, both ways together still end in time. */
  async function applyInTime(
    writes: readonly Write[],
    ifHeld: IfHeld,
    lockTimeoutMs: number,
    dueAtMs: number,
  ): Promise<readonly (Outcome | undefined)[]> {
    if (arePlain(writes)) {
      const created = await createPlain(writes, { lockTimeoutMs, dueAtMs }).catch((error) => {
        const isForTransaction = isRefusal(error) || (ifHeld === "pass over" && isLocked(error));
        if (!isForTransaction) throw error;
      });
      if (created) return created;
    }
    return runner.run(
      (client, announceCommit) =>
        applyInTransaction(client, writes, { ...options, ifHeld, lockTimeoutMs, announceCommit }),
      { dueAtMs },
    );
  }

  /** Without outcomes if a garden is still held when its lock times out: nothing was applied. */
  async function tryToApply(...args: Parameters<typeof applyInTime>) {
    try {
      return await applyInTime(...args);
    } catch (error) {
      if (!isLocked(error)) throw error;
      return args[0].map(() => undefined);
    }
  }

  function applyOrWait(writes: readonly Write[], waitMs: number, dueAtMs: number) {
    return tryToApply(writes, "wait", Math.max(1, Math.round(waitMs)), dueAtMs);
  }

  /** Gardens whose expired keys wait for the next cleanup. */
  let stillHeld: string[] = [];

  /** Waits for the garden. Returns false if it's still held. */
  async function forgetKeysOf(garden: string, nowMs: number): Promise<boolean> {
    try {
      const { rows } = await runner.write(forgetHeldKeys, [nowMs, garden, String(tryMsMax)]);
      return rows[0].held.length === 0;
    } catch (error) {
      if (!isLocked(error)) throw error;
      return false;
    }
  }

  return {
    async apply(writes) {
      const dueAtMs = runner.dueAtMs();
      while (performance.now() + waitMsMax < dueAtMs) {
        const outcomes = await applyOrWait(writes, waitMsMax, dueAtMs);
        if (outcomes.every((outcome) => outcome !== undefined)) return outcomes;
      }
      throw storageError("unavailable", "Another process holds a garden.");
    },

    contended: {
      waitsMax: runner.waitsMax,
      applyUnlessHeld: (writes) => tryToApply(writes, "pass over", groupWaitMs, runner.dueAtMs()),
      applyBefore(writes, untilMs) {
        const waitMs = Math.min(tryMsMax, untilMs - performance.now());
        return applyOrWait(writes, waitMs, Math.min(runner.dueAtMs(), untilMs + commitMs));
      },
    },

    async forgetKeys(nowMs) {
      const { rows } = await runner.write(forgetFreeKeys, [nowMs, stillHeld]);
      const { found, held } = rows[0] as { found: string; held: readonly string[] };
      for (const garden of held) {
        if (!(await forgetKeysOf(garden, nowMs))) stillHeld.push(garden);
      }
      const mayBeMore = Number(found) === forgottenMax;
      if (!mayBeMore) stillHeld = [];
      return mayBeMore;
    },

    forgetEvents(beforeMs, after) {
      const steps = {
        find: async (from: string) => (await runner.query(oldestEventsStatement, [from])).rows,
        forget: async (...values: ForgottenEvents) =>
          (await runner.write(forgetEventsStatement, values)).rowCount ?? 0,
      };
      return forgetEvents(steps, options.plantsMax, beforeMs, after);
    },
  };
}

/**
 * Forgets keys of the gardens that `condition` allows, and returns the gardens that couldn't be
 * locked. `lock` selects the gardens of `expired` and locks them: before the keys, like every write,
 * so that nobody uses a key again in between.
 */
function forgetKeysStatement(condition: string, lock: string): string {
  return `
  WITH expired AS (
    SELECT garden, ctid AS row FROM idempotency_keys
      WHERE expires_at_ms <= $1 AND ${condition} ORDER BY expires_at_ms LIMIT ${forgottenMax}),
  locked AS MATERIALIZED (${lock}),
  forgotten AS (
    DELETE FROM idempotency_keys
      WHERE expires_at_ms <= $1
        AND ctid = ANY (ARRAY (SELECT row FROM expired JOIN locked USING (garden)))
      RETURNING garden),
  counted AS (
    INSERT INTO gardens (garden, keys) SELECT garden, -count(*) FROM forgotten GROUP BY garden
      ON CONFLICT (garden) DO UPDATE SET keys = gardens.keys + excluded.keys)
  SELECT count(*) AS found,
    ARRAY (SELECT garden FROM expired EXCEPT SELECT garden FROM locked) AS held FROM expired`;
}

/** Passes over gardens that somebody else holds at this moment. */
const forgetFreeKeys = forgetKeysStatement(
  "garden <> ALL ($2::text[])",
  `SELECT free.garden FROM (SELECT DISTINCT garden FROM expired ORDER BY garden) AS named
     CROSS JOIN LATERAL (
       SELECT garden FROM gardens WHERE gardens.garden = named.garden
         FOR UPDATE SKIP LOCKED) AS free`,
);

/** Waits for one garden, which may be held most of the time by commits of its own writes. */
const forgetHeldKeys = forgetKeysStatement(
  "garden = $2",
  `SELECT garden FROM (SELECT set_config('lock_timeout', $3, true) AS value) AS lock_timeout
     CROSS JOIN LATERAL (
       SELECT garden FROM gardens WHERE garden = $2 AND value <> '' FOR UPDATE) AS waited`,
);
