/** How often a transaction is tried, over connections that fail as the test says. */
import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { type ClientBase, DatabaseError } from "pg";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import { ConnectionLost } from "./errors.ts";
import type { PrimaryPool } from "./pool.ts";
import { createTokenStorage } from "./tokens.ts";
import { TransactionRunner } from "./transaction.ts";
import { createWriter } from "./writer.ts";

/** Each try fails with the next of these, where that is one; the work has `dueMs` in all. */
function failing(failures: readonly unknown[], dueMs = 60_000) {
  const client = {
    on() {},
    off() {},
  } as unknown as ClientBase;
  const dueAtMs = performance.now() + dueMs;
  const use = <Result>(
    work: (client: ClientBase) => Promise<Result>,
    options: { dueAtMs: number },
  ) => {
    // All tries share one time.
    expect(options.dueAtMs).toBe(dueAtMs);
    return work(client);
  };
  const runner = new TransactionRunner({ dueAtMs: () => dueAtMs, use } as unknown as PrimaryPool);
  let tries = 0;
  const run = async (isCommitting: (tried: number) => boolean = () => false) => {
    const outcome = await runner
      .run(async (_client, commit) => {
        const failure = failures[tries++];
        if (isCommitting(tries)) commit();
        if (failure !== undefined) throw failure;
        return "done";
      })
      .catch((error: unknown) => error);
    return { outcome, tries };
  };
  return run;
}

const lost = new ConnectionLost("Connection lost.");
const isLost = expect.objectContaining({ code: "unavailable", cause: lost });

function withState(code: string): DatabaseError {
  const error = new DatabaseError("x", 1, "error");
  error.code = code;
  return error;
}

const race = withState("40001");
const isRace = expect.objectContaining({ code: "unavailable", cause: race });

test("work on a connection that is lost is tried once more, and no more", async () => {
  expect(await failing([lost])()).toEqual({ outcome: "done", tries: 2 });
  expect(await failing([lost, lost])()).toEqual({ outcome: isLost, tries: 2 });
  expect(await failing([race, lost])()).toEqual({ outcome: isLost, tries: 2 });
});

test("after a race work is tried ten times in all, and no more", async () => {
  expect(await failing(Array(9).fill(race))()).toEqual({ outcome: "done", tries: 10 });
  expect(await failing(Array(10).fill(race))()).toEqual({ outcome: isRace, tries: 10 });
});

test("nothing is tried again when its time is over", async () => {
  expect(await failing([race], -1)()).toEqual({ outcome: isRace, tries: 1 });
  expect(await failing([lost], -1)()).toEqual({ outcome: isLost, tries: 1 });
});

test("a group that one statement cannot store has no more time than any other", async () => {
  let nowMs = performance.now();
  const dueAtMs: number[] = [];
  const runner = new TransactionRunner({
    dueAtMs: () => nowMs + 60_000,
    async use(_work: unknown, options: { dueAtMs: number }) {
      dueAtMs.push(options.dueAtMs);
      nowMs += 5_000;
      throw withState(dueAtMs.length === 1 ? "23505" : "57014");
    },
  } as unknown as PrimaryPool);
  const { apply } = createWriter(runner);
  expect(await apply([create()]).catch((error) => error)).toMatchObject({ code: "unavailable" });
  expect(dueAtMs).toEqual([nowMs + 50_000, nowMs + 50_000]);
});

test("whether the outcome is unknown depends on the last try alone", async () => {
  const isFirst = (tried: number) => tried === 1;
  expect(await failing([race, lost])(isFirst)).toEqual({ outcome: isLost, tries: 2 });
  const { outcome, tries } = await failing([race, lost])((tried) => !isFirst(tried));
  expect(outcome).toMatchObject({ message: expect.stringContaining("outcome is unknown") });
  expect(tries).toBe(2);
});

test("of a token whose outcome is unknown nobody is sent back with a key", async () => {
  const client = Object.assign(new EventEmitter(), { query: () => Promise.reject(lost) });
  const runner = new TransactionRunner({
    dueAtMs: () => performance.now() + 60_000,
    use: <Result>(work: (client: unknown) => Promise<Result>) => work(client),
  } as unknown as PrimaryPool);
  const { revokeToken } = createTokenStorage(runner);
  const failure = await revokeToken("t1", 0).catch((error) => error);
  expect(failure.message).toEndWith("so its outcome is unknown. See plantstore token list.");
});
