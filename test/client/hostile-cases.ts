/** The client and a server that wants to fill its memory. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createGzip } from "node:zlib";
import { type PlantStore, PlantStoreProblem } from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";

/**
 * What the client may take in, with what buffers on the way hold. Compressed, a thousand times as
 * much fits into them, and on a busy machine they fill.
 */
const takenBytesMax = 32 * 1024 * 1024;
const compressedBytesMax = 16 * takenBytesMax;
const chunk = Buffer.alloc(64 * 1024, " ");

/** Responds without an end, as fast as the client reads. */
async function openEndlessServer(status: number, isCompressed: boolean) {
  let sentBytes = 0;
  const server = createServer((request, response) => {
    request.resume();
    const type = status < 400 ? "application/json" : "application/problem+json";
    const encoding = isCompressed ? { "content-encoding": "gzip" } : {};
    response.writeHead(status, { "content-type": type, ...encoding });
    const target = isCompressed ? createGzip({ level: 1 }) : response;
    // What is counted is on the wire: a full buffer of it is a hundred times as much, unpacked.
    if (target !== response) {
      target.pipe(response);
      target.on("data", ({ length }) => {
        sentBytes += length;
      });
    }
    const send = () => {
      while (!response.destroyed) {
        if (target === response) sentBytes += chunk.length;
        if (!target.write(chunk)) break;
      }
    };
    target.on("drain", send);
    send();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    sentBytes: () => sentBytes,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const calls: Readonly<Record<string, (store: PlantStore) => Promise<unknown>>> = {
  create: (store) => store.create({ name: "Fern" }),
  createMany: (store) => store.createMany([{ name: "Fern" }]),
  get: (store) => store.get(7),
  list: (store) => collect(store.list()),
  page: (store) => store.page({ limit: Number.POSITIVE_INFINITY }),
  me: (store) => store.me(),
  put: (store) => store.put(7, { name: "Fern" }),
  delete: (store) => store.delete(7),
};

/** All calls read in the same way, and to compress takes long. */
const endless = [
  { what: "200", status: 200, isCompressed: false, tried: Object.keys(calls) },
  { what: "404", status: 404, isCompressed: false, tried: ["create"] },
  { what: "200, compressed", status: 200, isCompressed: true, tried: ["create"] },
];

export const hostileCases: readonly ClientCase[] = [
  ...endless.map(
    ({ what, status, isCompressed, tried }): ClientCase => ({
      name: `stops reading an endless ${what}`,
      async run(world) {
        for (const name of tried) {
          const server = await openEndlessServer(status, isCompressed);
          const store = openStore(world, { url: server.url, retries: 0, timeoutMs: 110_000 });
          const problem = await failure(calls[name]?.(store) ?? assert.fail(), PlantStoreProblem);
          assert.deepEqual([name, problem.code], [name, "unexpected"]);
          const bytes = server.sentBytes();
          const bytesMax = isCompressed ? compressedBytesMax : takenBytesMax;
          assert.ok(bytes < bytesMax, `${name} took ${bytes} bytes`);
          server.close();
        }
      },
    }),
  ),
  {
    name: "reads a page of the longest plants that there are",
    async run(world) {
      const store = openStore(world);
      const longest = (length: number) => "\u0001".repeat(length);
      const drafts = Array.from({ length: 300 }, (_, index) => ({
        id: -(2n ** 63n) + BigInt(index),
        name: longest(200),
        tag: longest(100),
      }));
      await store.createMany(drafts);
      assert.deepEqual((await store.page({ limit: 300 })).plants, drafts);
    },
  },
];
