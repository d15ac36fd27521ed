/** A client that leaves in the middle of a stream. */
import { expect, mock, test } from "bun:test";
import { streamChunks } from "./stream.ts";

/** Lets everything go on that doesn't wait for the test. */
async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await new Promise((resolve) => setImmediate(resolve));
}

test("a stream frees its source and ends once if its client leaves, even if the source fails then", async () => {
  const slowChunk = Promise.withResolvers<string>();
  const chunks = ["a", slowChunk.promise, "c"];
  const source = { next: mock(async () => chunks.shift()), close: mock() };
  const onEnd = mock();
  const reader = streamChunks(source, async () => {}, onEnd).getReader();
  await reader.read();

  const reading = reader.read();
  await settle();
  const leaving = reader.cancel();
  slowChunk.reject(new Error("the storage is gone"));
  await leaving;

  expect(await reading).toEqual({ done: true, value: undefined });
  await settle();
  expect(source.next).toHaveBeenCalledTimes(2);
  expect(source.close).toHaveBeenCalledTimes(1);
  expect(onEnd).toHaveBeenCalledTimes(1);
});
