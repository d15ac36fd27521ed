/** The files of the pages: built once, and shared by all who take them, however slowly. */
import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import type { Context } from "./operation.ts";
import { webPages } from "./web-pages.ts";

async function read(name: string, headers: HeadersInit, parameters = {}): Promise<Blob> {
  const operation = webPages.find((page) => page.name === name);
  const nothing = { caller: undefined, body: undefined, isHead: false, held: undefined };
  const input = { ...nothing, headers: new Headers(headers), parameters };
  // Pages use nothing of the context.
  const reply = await operation?.run({} as Context, input);
  if (!(reply?.body instanceof Blob)) throw new Error(`${name} is not a blob.`);
  return reply.body;
}

// With a small window for receiving, and without a token, each connection that asked for the
// renderer and did not read it took 2.7 MB of memory, when the runtime was given text or bytes.
test("a file is a blob, plain and compressed, which the runtime does not copy for each", async () => {
  const page = await (await read("readReference", {})).text();
  const name = /assets\/(reference-library[^"]+)/.exec(page)?.[1] ?? "";
  const plain = await read("readAsset", {}, { name });
  const gzipped = await read("readAsset", { "accept-encoding": "gzip" }, { name });
  expect(plain.size).toBeGreaterThan(1_000_000);
  expect(gunzipSync(await gzipped.bytes()).equals(await plain.bytes())).toBe(true);
});
