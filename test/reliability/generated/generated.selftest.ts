/** A build whose responses do not match what it stores fails the suite. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { GeneratedTrial } from "./generated-trial.ts";

test("a create that returns the location of another plant is found", async () => {
  const text = "plantLocation(basePath, created.id)";
  const by = "plantLocation(basePath, created.id + 1n)";
  using broken = changeProgram([{ file: "http/operations.ts", text, by }]);
  const trial = await GeneratedTrial.start({ program: broken.program });
  const { faults } = await trial.run(1, 40);
  await trial.stop();
  expect(faults).toContainEqual(expect.stringMatching(/is not listed|Location/));
}, 60_000);
