/**
 * Applies a group of writes to PostgreSQL, in one of two ways. Every write to a garden locks its
 * row first, so instances take turns.
 *
 * | group                                         | statements                                                | decided by        |
 * |-----------------------------------------------|-----------------------------------------------------------|-------------------|
 * | creates without ids, none of a bulk with keys | one (`plain-creates.ts`)                                  | the statement     |
 * | any other, and what the statement refused     | a transaction of two round trips (`group-transaction.ts`) | `domain/rules.ts` |
 *
 * Of a group with several gardens, the transaction passes over those that another process holds. The
 * statement can't: its INSERT waits. So it waits for a moment only, then leaves it to the transaction.
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
import { hasState } from "./errors.ts";
import { applyInTransaction } from "./group-transaction.ts";
import { arePlain, isRefusal, preparePlainCreates } from "./plain-creates.ts";
import type { TransactionRunner } from "./transaction.ts";

const lockNotAvailable = "55P03";
/** How long the statement waits for a garden that shares it with others. */
const statementWaitMs = 50;
/** How long one try waits for a garden of its own, so that other gardens get the connection. */
const ownWaitMs = 1_000;
/** The same if there is only one connection. */
const onlyWaitMs = 100;
/** Of the time that a request may take, what is left for the commit after the garden was held. */
const commitMs = 4_000;

export function createWriter(
  runner: TransactionRunner,
  options: WriterOptions,
): Pick<PlantStorage, "apply" | "shared" | "forgetKeys" | "forgetEvents"> {
  const createPlain = preparePlainCreates(runner, options);
  // A wait ends before its statement does.
  const waitMsMax = runner.statementTimeoutMs / 2;
  const tryMsMax = Math.min(waitMsMax, runner.hasOneConnection ? onlyWaitMs : ownWaitMs);

  /**
   * Without `waitMs`, it passes over gardens that another process holds. If one statement isn't
   * enough, both ways together still end in time.
   */
  async function applyInTime(
    writes: readonly Write[],
    dueAtMs: number,
    waitMs?: number,
  ): Promise<readonly (Outcome | undefined)[]> {
    if (arePlain(writes)) {
      const inTime = { waitMs: waitMs ?? statementWaitMs, dueAtMs };
      const created = await createPlain(writes, inTime).catch((error) => {
        const isForTransaction = isRefusal(error) || (!waitMs && isLocked(error));
        if (!isForTransaction) throw error;
      });
      if (created) return created;
    }
    const waiting = { passesOver: waitMs === undefined, waitMs: waitMs ?? statementWaitMs };
    return runner.run(
      (client, announceCommit) =>
        applyInTransaction(client, writes, { ...options, ...waiting, announceCommit }),
      { dueAtMs },
    );
  }

  /** Without outcomes if a garden is still held after that time: nothing was applied. */
  async function applyUnlessHeld(writes: readonly Write[], dueAtMs: number, waitMs?: number) {
    try {
      const wholeMs = waitMs === undefined ? undefined : Math.max(1, Math.round(waitMs));
      return await applyInTime(writes, dueAtMs, wholeMs);
    } catch (error) {
      if (!isLocked(error)) throw error;
      return writes.map(() => undefined);
    }
  }

  return {
    async apply(writes) {
      const dueAtMs = runner.dueAtMs();
      while (performance.now() + waitMsMax < dueAtMs) {
        const outcomes = await applyUnlessHeld(writes, dueAtMs, waitMsMax);
        if (outcomes.every((outcome) => outcome !== undefined)) return outcomes;
      }
      throw storageError("unavailable", "Another process holds a garden.");
    },

    shared: {
      waitsMax: runner.waitsMax,
      apply(writes, untilMs) {
        const dueAtMs = runner.dueAtMs();
        if (untilMs === undefined) return applyUnlessHeld(writes, dueAtMs);
        const waitMs = Math.min(tryMsMax, untilMs - performance.now());
        return applyUnlessHeld(writes, Math.min(dueAtMs, untilMs + commitMs), waitMs);
      },
    },

    async forgetKeys(nowMs) {
      const { rows } = await runner.write(forgetKeysStatement, [nowMs]);
      return Number(rows[0]?.count) === forgottenMax;
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
 * Locks gardens before keys, like every write, so that nobody uses a key again in between. Skips
 * gardens that somebody else holds: their keys have time.
 */
const forgetKeysStatement = `
  WITH expired AS (
    SELECT garden, ctid AS row FROM idempotency_keys
      WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${forgottenMax}),
  locked AS (
    SELECT free.garden FROM (SELECT DISTINCT garden FROM expired ORDER BY garden) AS named
      CROSS JOIN LATERAL (
        SELECT garden FROM gardens WHERE gardens.garden = named.garden
          FOR UPDATE SKIP LOCKED) AS free),
  forgotten AS (
    DELETE FROM idempotency_keys
      WHERE expires_at_ms <= $1
        AND ctid = ANY (ARRAY (SELECT row FROM expired JOIN locked USING (garden)))
      RETURNING garden),
  counted AS (
    INSERT INTO gardens (garden, keys) SELECT garden, -count(*) FROM forgotten GROUP BY garden
      ON CONFLICT (garden) DO UPDATE SET keys = gardens.keys + excluded.keys)
  SELECT count(*) FROM forgotten`;

/** The runner has mapped it to `unavailable`, so the server's error is the cause. */
function isLocked(error: unknown): boolean {
  return hasState((error as Error).cause, lockNotAvailable);
}
