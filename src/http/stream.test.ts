/** A client that leaves in the middle of a stream. */
import { expect, test } from "bun:test";
import { streamChunks } from "./stream.ts";

/** Lets everything that can go on without the test go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("a client that leaves while a chunk is being made frees the source and ends once", async () => {
  let made = 0;
  let isFreed = false;
  let ends = 0;
  const slow = Promise.withResolvers<string>();
  const chunks = ["a", slow.promise, "c"];
  const source = {
    next: async () => chunks[made++],
    close() {
      isFreed = true;
    },
  };
  const stream = streamChunks(
    source,
    async () => {},
    () => ends++,
  );
  const reader = stream.getReader();
  await reader.read();
  const reading = reader.read();
  await settle();
  const leaving = reader.cancel();
  await settle();
  slow.resolve("b");
  await leaving;
  expect(await reading).toEqual({ done: true, value: undefined });
  await settle();
  expect({ isFreed, made, ends }).toEqual({ isFreed: true, made: 2, ends: 1 });
});
