/** A build without a limit on waiting requests fails the flood. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { flood, stallSqlite } from "./flood.ts";

test("a service that lets every request wait is found", async () => {
  using broken = changeProgram([
    {
      file: "http/admission.ts",
      text: "inFlightMax: 1_024",
      by: "inFlightMax: 1_000_000",
    },
  ]);
  await using service = await startService({ args: ["--threads", "1"], program: broken.program });
  const { faults } = await flood(service, () => stallSqlite(service.database));
  expect(faults.join()).toContain("creates waited, and not");
}, 30_000);
