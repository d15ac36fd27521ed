/** A build that writes tokens fails the suite. */
import { expect, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { gatherTraces } from "./traces.ts";

test("tokens in the log, in spans and in the process list are found", async () => {
  using broken = changeProgram([
    {
      file: "main.ts",
      text: "const exitCode =",
      by: `await Bun.spawn(["sh", "-c", "sleep 0.2", process.env.PLANTSTORE_TOKEN ?? ""]).exited;
        const exitCode =`,
    },
    {
      file: "http/exchange.ts",
      text: "const route = exchange.route?.path;",
      by: 'const route = request.headers.get("authorization") ?? undefined;',
    },
  ]);
  const { found } = await gatherTraces("json", broken.program);
  expect(found).toContain("write token in standard output");
  expect(found).toContain("expired JWT in standard output");
  expect(found).toContain("write token in spans");
  if (process.platform === "linux") {
    expect(found).toContain("write token in the processes during plants list with write token");
  }
});
