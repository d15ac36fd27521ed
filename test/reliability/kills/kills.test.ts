/**
 * The real program is killed at every kind of moment and told to stop under load, and keeps its
 * word.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { live, moments } from "./life.ts";

setDefaultTimeout(120_000);

const seed = 6;

test("every answer holds, whenever it is killed or told to stop", async () => {
  const { faults, figures } = await live({ seed, ends: moments, threads: 2, isSecure: false });
  expect(faults).toEqual([]);
  expect(figures.answered).toBeGreaterThan(0);
  expect(figures.stopped).toBe(1);
});

test("over TLS, no answer is cut short when it is told to stop", async () => {
  const { faults } = await live({ seed, ends: ["stop"], threads: 1, isSecure: true });
  expect(faults).toEqual([]);
});

describe("it is found out", () => {
  test("when plants are answered before they are committed", async () => {
    const file = "storage/sqlite/writer.ts";
    using broken = changeProgram([
      { file, text: "begin.run();", by: "if (!database.inTransaction) begin.run();" },
      { file, text: "commit.run();", by: "setTimeout(() => commit.run(), 1_000);" },
    ]);
    const ends = ["first answer", "load"] as const;
    const { faults } = await live({
      seed,
      ends,
      threads: 1,
      isSecure: false,
      program: broken.program,
    });
    expect(faults.filter((fault) => fault.startsWith("lost: "))).not.toEqual([]);
  });

  test.each([
    ["cuts connections off", "listening/listener.ts", "stop(false)", "stop(true)"],
    ["ends at once", "cli/serve-command.ts", "await service.stop()", "process.exit(0)"],
  ])("when a stop %s", async (_, file, text, by) => {
    using broken = changeProgram([{ file, text, by }]);
    const ends = ["stop"] as const;
    const { faults } = await live({
      seed,
      ends,
      threads: 1,
      isSecure: false,
      program: broken.program,
    });
    expect(faults.filter((fault) => fault.startsWith("cut short: "))).not.toEqual([]);
  });
});
