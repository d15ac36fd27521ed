/** Builds that lose or repeat confirmed writes, or cut responses short, fail the suite. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { live } from "./life.ts";

const usual = { seed: 6, threads: 1, isSecure: false };

test("writes that are confirmed before they are committed are reported as lost", async () => {
  const file = "storage/sqlite/writer.ts";
  using broken = changeProgram([
    { file, text: "begin.run();", by: "if (!database.inTransaction) begin.run();" },
    { file, text: "commit.run();", by: "setTimeout(() => commit.run(), 1_000);" },
  ]);
  const ends = ["first write", "load"] as const;
  const { faults } = await live({ ...usual, ends, program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^lost: /));
});

test("a stop that closes connections at once is reported", async () => {
  const file = "server/listener.ts";
  using broken = changeProgram([{ file, text: "stop(false)", by: "stop(true)" }]);
  const { faults } = await live({ ...usual, ends: ["stop"], program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^cut short: /));
});

test("a build that has the keys of bulks only in memory is reported", async () => {
  const file = "storage/sqlite/writer.ts";
  const begin = 'const begin = database.query("BEGIN IMMEDIATE");';
  const find = "const found = findKey.get(garden, keyHash);";
  const keep = "keepKeys(keys.changed());";
  using broken = changeProgram([
    { file, text: begin, by: `const kept = new Map(); ${begin}` },
    {
      file,
      text: find,
      by: `const own = kept.get(keyHash.toString("hex")); if (own) return own; ${find}`,
    },
    {
      file,
      text: keep,
      by: `for (const row of keys.changed()) {
        if (row.lines) kept.set(row.keyHash.toString("hex"), row);
        else keepKeys([row]);
      }`,
    },
  ]);
  const { faults } = await live({ ...usual, ends: ["load", "load"], program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^(duplicated|created again): /));
});
