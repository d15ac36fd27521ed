/** Programs that lose or cut short what they answered are found out. */
import { describe, expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { live } from "./life.ts";

const seed = 6;

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
    ["cuts connections off", "server/listener.ts", "stop(false)", "stop(true)"],
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
