/** A thread's end of the worker, and that nothing changes on the way between them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import type { TokenUse } from "../../domain/storage.ts";
import { packOutcomes } from "./wire.ts";
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
