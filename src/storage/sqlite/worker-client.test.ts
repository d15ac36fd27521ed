/** A thread's end of the worker, and that nothing changes on the way between them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import type { Outcome, TokenUse, Write } from "../../domain/storage.ts";
import { prepare } from "../rules.ts";
import { packOutcomes, packWrites, unpackOutcomes, unpackWrites } from "./wire.ts";
import { WorkerClient } from "./worker-client.ts";

let worker: MessagePort;
let thread: WorkerClient;

beforeEach(() => {
  const { port1, port2 } = new MessageChannel();
  worker = port1;
  thread = WorkerClient.join({ port: port2, versions: new SharedArrayBuffer(4) });
});

afterEach(async () => {
  await thread.close();
  worker.close();
});

const failureOf = (promise: Promise<unknown>) => promise.catch((error) => error);

test("a request that cannot be sent does not take the reply of the next one", async () => {
  worker.onmessage = () => worker.postMessage({ result: packOutcomes([created(1n)]) });
  const use = { id: "x", usedAtMs: () => 1 } as unknown as TokenUse;
  expect(await failureOf(thread.noteTokenUses([use]))).toBeInstanceOf(Error);
  expect(await thread.apply([create()])).toEqual([created(1n)]);
});

test("of writes that waited when the worker broke down the outcome is unknown", async () => {
  const received = new Promise((resolve) => {
    worker.onmessage = resolve;
  });
  const waiting = failureOf(thread.apply([create()]));
  await received;
  worker.close();
  expect(await waiting).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
  });
  expect(await failureOf(thread.apply([create()]))).toMatchObject({
    code: "unavailable",
    message: "The storage cannot take writes.",
  });
});

test("writes arrive at the worker as they were sent", () => {
  const idempotency = { key: "k", line: 130, nowMs: 1, expiresAtMs: 2 };
  const plant = { kind: "create", garden: "g", name: 'a "b" \\ \u{1f33f}\n', tag: "" } as const;
  const writes: Write[] = [
    { ...plant, id: undefined, idempotency: undefined },
    { ...plant, id: plantIdMin, idempotency },
    { ...plant, id: 0n, idempotency: undefined },
    { ...plant, kind: "put", id: 7n, preconditions: { ifMatch: ["a"], ifNoneMatch: "*" } },
    { kind: "delete", garden: "g", id: plantIdMax, preconditions: { ifMatch: "*" } },
  ];
  expect(unpackWrites(packWrites(writes))).toEqual(prepare(writes));
});

test("outcomes come back as they were sent", () => {
  const outcomes: Outcome[] = [
    { kind: "created", id: 2n ** 53n + 1n, replayed: true },
    { kind: "taken" },
    { kind: "exhausted" },
    { kind: "mismatch" },
    { kind: "replaced" },
    { kind: "deleted" },
    { kind: "precondition-failed" },
    { kind: "missing" },
  ];
  expect(unpackOutcomes(packOutcomes(outcomes))).toEqual(outcomes);
});
