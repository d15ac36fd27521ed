/** No token is in anything that the program writes, wherever it was sent. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram } from "../../changed-program.ts";
import { gatherTraces } from "./traces.ts";

setDefaultTimeout(120_000);

test.each(["json", "text"] as const)(
  "no token is in anything it writes, with a log of %s, and all refusals are one",
  async (log) => {
    const { found, places, tokens, refusals } = await gatherTraces(log);
    expect(found).toEqual([]);
    expect(refusals).toEqual([expect.stringMatching(/^401 /)]);
    expect(tokens).toBeGreaterThan(20);
    expect(places).toEqual(
      expect.arrayContaining([
        "standard output",
        "/metrics",
        "spans",
        "plants.db-wal while it runs",
        "plants.csv while it runs",
      ]),
    );
  },
);

test("a log, spans and a process that hold the token are found out", async () => {
  using broken = changeProgram([
    {
      file: "main.ts",
      text: "const exitCode =",
      by: `await Bun.spawn(["sh", "-c", "sleep 0.2", process.env.PLANTSTORE_TOKEN ?? ""]).exited;
        const exitCode =`,
    },
    {
      file: "http/ending.ts",
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
