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
  const constant = "const forgottenKeysMax = 1_000;";
  const find = "const found = findKey.get(garden, toBytes(row));";
  const store = "storeKey.run(garden, toBytes(key), entries, expiresAtMs);";
  using broken = changeProgram([
    { file, text: constant, by: `const kept = new Map(); ${constant}` },
    { file, text: find, by: `if (kept.has(row)) return kept.get(row); ${find}` },
    {
      file,
      text: store,
      by: `if (entries.length > 24) kept.set(key, { entries, expiresAtMs }); else ${store}`,
    },
  ]);
  const { faults } = await live({ ...usual, ends: ["load", "load"], program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^(duplicated|created again): /));
});

test("a put that is confirmed before it is committed is reported", async () => {
  const file = "storage/sqlite/writer.ts";
  const text = "replacePlant.run(name, tag, garden, id);";
  using broken = changeProgram([
    { file, text, by: `setTimeout(() => ${text.slice(0, -1)}, 500);` },
  ]);
  const { faults } = await live({ ...usual, ends: ["load", "load"], program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^changed: /));
});

test("a build that does not count deleted plants is reported", async () => {
  const edit = { file: "storage/rules.ts", text: "this.#plants--;", by: "" };
  using broken = changeProgram([edit]);
  const { faults } = await live({ ...usual, ends: ["load"], program: broken.program });
  expect(faults).toContainEqual(expect.stringMatching(/^miscounted: gardener /));
});
