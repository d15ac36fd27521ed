/** Sending text at the client's pace, and ending exactly once however the sending ends. */
import { beforeEach, expect, test } from "bun:test";
import type { Source } from "../domain/plants.ts";
import { streamText } from "./stream.ts";

let made = 0;
let isFreed: boolean;
let ends: number;
const onEnd = () => {
  ends++;
};

beforeEach(() => {
  made = 0;
  isFreed = false;
  ends = 0;
});

function source(chunks: readonly (string | Promise<string>)[]): Source<string> {
  return {
    async next() {
      return chunks[made++];
    },
    close() {
      isFreed = true;
    },
  };
}

function send(chunks: Source<string>): ReadableStream {
  return streamText(chunks, (make) => make(), onEnd);
}

/** Lets everything that can go on without the test go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("makes a chunk only when the client takes it", async () => {
  const reader = send(source(Array.from({ length: 100 }, String))).getReader();
  await settle();
  expect(made).toBe(0);
  await reader.read();
  await settle();
  expect(made).toBe(1);
  expect(ends).toBe(0);
  await reader.cancel();
});

test("breaks off where the source fails, so that a cut list does not pass for a whole one", async () => {
  const failing = [Promise.resolve("["), Promise.reject(new Error("The disk is gone."))];
  failing[1]?.catch(() => {});
  const reader = send(source(failing)).getReader();
  expect((await reader.read()).done).toBe(false);
  const failure = await reader.read().catch((error) => error);
  expect(failure).toBeInstanceOf(Error);
  await settle();
  expect(ends).toBe(1);
  expect(isFreed).toBe(true);
});

test("a client that leaves while a chunk is being made frees the source and ends once", async () => {
  const slow = Promise.withResolvers<string>();
  const reader = send(source(["a", slow.promise, "c"])).getReader();
  await reader.read();
  const reading = reader.read();
  await settle();
  const leaving = reader.cancel();
  await settle();
  slow.resolve("b");
  await leaving;
  expect(await reading).toEqual({ done: true, value: undefined });
  await settle();
  expect(isFreed).toBe(true);
  expect(made).toBe(2);
  expect(ends).toBe(1);
});
