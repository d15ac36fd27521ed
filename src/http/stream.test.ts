/** What a stream sends, and a client that leaves in the middle of it. */
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

test("nothing is sent for an empty text, and the next one takes its own turn", async () => {
  const chunks = ["a", "", "", "b"];
  let turns = 0;
  const stream = streamChunks({ next: async () => chunks.shift(), close() {} }, async () => {
    turns++;
  });
  const sent: string[] = [];
  for await (const chunk of stream) sent.push(new TextDecoder().decode(chunk));
  expect({ sent, turns }).toEqual({ sent: ["a", "b"], turns: 4 });
});
