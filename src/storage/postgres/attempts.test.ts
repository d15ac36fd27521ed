/** How often a transaction is tried, over connections that fail as the test says. */
import { expect, test } from "bun:test";
import { type ClientBase, DatabaseError } from "pg";
import { Attempts } from "./attempts.ts";
import { ConnectionLost } from "./failure.ts";
import type { Primary } from "./primary.ts";

/** Each try fails with the next of these, where that is one; the work has `dueMs` in all. */
function failing(failures: readonly unknown[], dueMs = 60_000) {
  const client = {
    on() {},
    off() {},
    query: async () => ({ rows: [{ synchronous_commit: "on", client_min_messages: "notice" }] }),
  } as unknown as ClientBase;
  const dueAtMs = performance.now() + dueMs;
  const use = <Result>(work: (client: ClientBase) => Promise<Result>) => work(client);
  const attempts = new Attempts({ dueAtMs: () => dueAtMs, use } as unknown as Primary);
  let tries = 0;
  const run = async (isCommitting: (tried: number) => boolean = () => false) => {
    const outcome = await attempts
      .transact(async (_client, commit) => {
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

function withState(code: string): DatabaseError {
  const error = new DatabaseError("x", 1, "error");
  error.code = code;
  return error;
}

const race = withState("40001");

test("work on a connection that is lost is tried once more, and no more", async () => {
  expect(await failing([lost])()).toEqual({ outcome: "done", tries: 2 });
  expect(await failing([lost, lost])()).toEqual({ outcome: lost, tries: 2 });
  expect(await failing([race, lost])()).toEqual({ outcome: lost, tries: 2 });
});

test("after a race work is tried ten times in all, and no more", async () => {
  expect(await failing(Array(9).fill(race))()).toEqual({ outcome: "done", tries: 10 });
  expect(await failing(Array(10).fill(race))()).toEqual({ outcome: race, tries: 10 });
});

test("nothing is tried again when its time is over", async () => {
  for (const failure of [race, lost]) {
    expect(await failing([failure], -1)()).toEqual({ outcome: failure, tries: 1 });
  }
});

test("whether the outcome is unknown depends on the last try alone", async () => {
  const isFirst = (tried: number) => tried === 1;
  expect(await failing([race, lost])(isFirst)).toEqual({ outcome: lost, tries: 2 });
  const { outcome, tries } = await failing([race, lost])((tried) => !isFirst(tried));
  expect(outcome).toMatchObject({ message: expect.stringContaining("outcome is unknown") });
  expect(tries).toBe(2);
});
