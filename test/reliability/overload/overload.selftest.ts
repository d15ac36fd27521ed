/** A service that takes more than it can is found out by the flood. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { flood } from "./flood.ts";
import { stallSqlite } from "./stall.ts";

test("a service that lets all of them wait is found out", async () => {
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
