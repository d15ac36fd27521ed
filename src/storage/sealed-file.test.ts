/** A sealed file comes back as it was, and no bit of it can change without being noticed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { readDescription, seal, unseal } from "./sealed-file.ts";

const description = {
  madeAt: "2026-07-01T12:00:00.000Z",
  version: "1.2.3",
  plants: 1_000,
  tokens: 2,
};
const { signal } = new AbortController();
/** Of several pieces of a stream, and with what looks like an end inside. */
const database = Buffer.concat([
  Buffer.alloc(150_000, 0xa5),
  Buffer.from(`{"kind":"plantstore backup 1"}\n${"0".repeat(64)}\n`),
]);

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "plants.backup");
});

afterEach(() => folder[Symbol.dispose]());

async function readBack() {
  const tally = { plants: 0, plantsInAll: 0 };
  const pieces: Uint8Array[] = [];
  const read = await unseal(path, (bytes) => pieces.push(bytes), tally, signal);
  return { description: read, database: Buffer.concat(pieces), tally };
}

function reasonOf(reading: Promise<unknown>): Promise<string> {
  return reading.then(
    () => "",
    (error) => error.message,
  );
}

test("comes back as it was, with its description", async () => {
  writeFileSync(path, database);
  await seal(path, description, signal);
  const read = await readBack();
  expect(read.description).toMatchObject(description);
  expect(read.database.equals(database)).toBe(true);
  expect(read.tally).toEqual({ plants: 1_000, plantsInAll: 1_000 });
  expect(readDescription(path)).toMatchObject(description);
});

test.each([
  '{"kind":"plantstore backup 1",',
  '{"kind":"plantstore backup 1","plants":1}',
  '{"kind":"plantstore backup 1",'.repeat(40),
])("comes back as it was, even if the database ends like this: %s", async (name) => {
  writeFileSync(path, name);
  await seal(path, description, signal);
  const read = await readBack();
  expect(read.description).toMatchObject(description);
  expect(read.database.toString()).toBe(name);
});

/** In which pieces it is read. */
const pieceBytes = 64 * 1024;

test.each([pieceBytes - 150, pieceBytes - 1, pieceBytes, pieceBytes + 1])(
  "comes back as it was, wherever its end begins in a piece: behind %i bytes",
  async (bytes) => {
    const content = Buffer.alloc(bytes, 0xa5);
    writeFileSync(path, content);
    await seal(path, description, signal);
    expect((await readBack()).database.equals(content)).toBe(true);
  },
);

test("can be checked with other tools: the last line is the SHA-256 of all before it", async () => {
  writeFileSync(path, database);
  await seal(path, description, signal);
  const all = readFileSync(path);
  const checksum = new Bun.CryptoHasher("sha256").update(all.subarray(0, -65)).digest("hex");
  expect(all.subarray(-65).toString()).toBe(`${checksum}\n`);
});

test("is refused when any one bit of it has changed", async () => {
  writeFileSync(path, "a small database");
  await seal(path, description, signal);
  const whole = readFileSync(path);
  const unnoticed: number[] = [];
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const changed = Buffer.from(whole);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    writeFileSync(path, changed);
    const reason = await reasonOf(readBack());
    if (!/^it is (?:damaged|no backup)/.test(reason)) unnoticed.push(bit);
  }
  expect(unnoticed).toEqual([]);
});

test("is refused when it is cut short anywhere, or something stands behind it", async () => {
  writeFileSync(path, "a small database");
  await seal(path, description, signal);
  const whole = readFileSync(path);
  for (let length = 0; length < whole.length; length++) {
    writeFileSync(path, whole.subarray(0, length));
    expect(await reasonOf(readBack())).toContain("no backup of Plant Store, or not whole");
  }
  writeFileSync(path, whole);
  appendFileSync(path, "\n");
  expect(await reasonOf(readBack())).toContain("no backup of Plant Store, or not whole");
});

test("stops when it is told to", async () => {
  writeFileSync(path, database);
  await seal(path, description, signal);
  const stopped = AbortSignal.abort("enough");
  const tally = { plants: 0, plantsInAll: 0 };
  expect(await unseal(path, () => {}, tally, stopped).catch((error) => error)).toBe("enough");
  expect(await seal(path, description, stopped).catch((error) => error)).toBe("enough");
});

test.each([
  ["a count that is none", { plants: "many" }],
  ["no count", { tokens: undefined }],
  ["a count below zero", { plants: -1 }],
  ["a time that is none", { madeAt: "\u001b[31mtoday" }],
])("is no backup with %s in its description", async (_, odd) => {
  writeFileSync(path, database);
  await seal(path, { ...description, ...odd } as never, signal);
  expect(readDescription(path)).toBeUndefined();
});

test.skipIf(process.platform === "win32")(
  "says why, as the system does, when only a part of its end can be written",
  () => {
    writeFileSync(path, Buffer.alloc(8_100));
    const script = `
      const { seal } = await import(${JSON.stringify(join(import.meta.dir, "sealed-file.ts"))});
      const sealing = seal(${JSON.stringify(path)}, {}, new AbortController().signal);
      process.stdout.write(await sealing.catch(({ code, syscall }) => code + " " + syscall));
    `;
    // In blocks of 512 bytes.
    const limited = 'trap "" XFSZ; ulimit -f 16; exec "$0" -e "$1"';
    const { stdout } = Bun.spawnSync(["sh", "-c", limited, process.execPath, script]);
    expect(stdout.toString()).toBe("EFBIG write");
  },
);
