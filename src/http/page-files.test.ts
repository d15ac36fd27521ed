/** The files of the pages: made once, and shared by all who take them, however slowly. */
import { expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { findAsset, loadReference } from "./page-files.ts";

// With a small window for receiving, and without a token, each connection that asked for the
// renderer and did not read it took 2.7 MB of memory, when the runtime was given text or bytes.
test("a file is a blob, plain and compressed, which the runtime does not copy for each", async () => {
  const page = await (await loadReference()).plain.text();
  const name = /assets\/(reference-library[^"]+)/.exec(page)?.[1] ?? "";
  const file = await findAsset(name);
  expect(file?.plain).toBeInstanceOf(Blob);
  expect(file?.gzipped).toBeInstanceOf(Blob);
  expect(file?.plain.size).toBeGreaterThan(1_000_000);
  const unpacked = gunzipSync(await (file?.gzipped ?? new Blob()).bytes());
  expect(unpacked.equals(await (file?.plain ?? new Blob()).bytes())).toBe(true);
});
