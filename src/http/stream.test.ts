/** A client that leaves in the middle of a stream. */
import { expect, mock, test } from "bun:test";
import { streamChunks } from "./stream.ts";

/** Lets everything that can go on without the test go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("a client that leaves while a chunk is being made frees the source and ends once, even if that fails", async () => {
  const slow = Promise.withResolvers<string>();
  const chunks = ["a", slow.promise, "c"];
  const source = { next: mock(async () => chunks.shift()), close: mock() };
  const end = mock();
  const reader = streamChunks(source, async () => {}, end).getReader();
  await reader.read();
  const reading = reader.read();
  await settle();
  const leaving = reader.cancel();
  slow.reject(new Error("the storage is gone"));
  await leaving;
  expect(await reading).toEqual({ done: true, value: undefined });
  await settle();
  const calls = [source.next, source.close, end].map((each) => each.mock.calls.length);
  expect(calls).toEqual([2, 1, 1]);
});
