/** The pages' files: built once, and shared by all readers, however slow. */
import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import type { Context, Reply } from "./operation.ts";
import { webPages } from "./web-pages.ts";

async function read(name: string, headers: HeadersInit, parameters = {}): Promise<Reply["body"]> {
  const operation = webPages.find((page) => page.name === name);
  const nothing = { caller: undefined, token: undefined, body: undefined };
  const request = new Request("http://plants.test", { headers });
  const input = { ...nothing, request, parameters };
  // Pages use nothing of the context.
  const reply = await operation?.run({} as Context, input);
  return reply?.body;
}

async function readChunks(body: Reply["body"]): Promise<Uint8Array[]> {
  if (typeof body !== "object" || body instanceof Uint8Array) throw new Error("It came whole.");
  const chunks: Uint8Array[] = [];
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    chunks.push(chunk as Uint8Array);
  }
  return chunks;
}

test("a small file comes whole, a large one in chunks of 64 KiB, plain and compressed", async () => {
  const page = new TextDecoder().decode((await read("readReference", {})) as Uint8Array);
  const name = /assets\/(reference-library[^"]+)/.exec(page)?.[1] ?? "";
  const plain = await readChunks(await read("readAsset", {}, { name }));
  const gzipped = await readChunks(
    await read("readAsset", { "accept-encoding": "gzip" }, { name }),
  );
  expect(Math.max(...plain.map(({ byteLength }) => byteLength))).toBe(64 * 1024);
  expect(Buffer.concat(plain).byteLength).toBeGreaterThan(1_000_000);
  expect(gunzipSync(Buffer.concat(gzipped)).equals(Buffer.concat(plain))).toBe(true);
});
