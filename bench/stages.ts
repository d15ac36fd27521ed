/** Where the time of a request goes: each stage added to the bare runtime in turn, side by side. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunPath } from "./contenders/paths.ts";
import { say, showProgress } from "./output.ts";
import { medianOf } from "./parts/median.ts";
import { runToEnd, startChild } from "./process/children.ts";
import { findFreePort, loopback } from "./process/free-port.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const rounds = 5;
const roundSeconds = 2;
const server = join(import.meta.dir, "contenders/servers/stage-server.ts");

const stages = {
  list: [
    "bare",
    "+ the target (path and query)",
    "+ host, request id, token and its caller",
    "+ the cached response",
    "+ a response with an id of its own",
    "+ metrics and the log line",
    "the whole service",
  ],
  create: [
    "bare",
    "+ target, host, request id, caller, content type",
    "+ the body, bounded in time, valid UTF-8",
    "+ JSON without loss, and validation",
    "+ the durable commit, in groups",
    "+ a response with its id, metrics and the log line",
    "the whole service",
  ],
} as const;

const workspace = new Workspace();
try {
  say(await measure("list"));
  say(await measure("create"));
} finally {
  workspace.remove();
}

async function measure(operation: keyof typeof stages): Promise<string> {
  const seats = await Promise.all(stages[operation].map((_, stage) => open(operation, stage)));
  for (let round = 0; round <= rounds; round++) {
    showProgress(`${operation}: round ${round} of ${rounds}`);
    for (const seat of seats) {
      const rate = await drive(operation, seat.port, seat.directory);
      // The first round warms up.
      if (round > 0) seat.rates.push(rate);
    }
  }
  for (const seat of seats) await seat.child.stop();
  const rates = seats.map((seat) => medianOf(seat.rates));
  const microseconds = rates.map((rate) => 1e6 / rate);
  return renderTable(
    [operation === "list" ? "list 20" : "create", "answers/s", "µs", "added", "of bare"],
    stages[operation].map((title, stage) => [
      title,
      Math.round(rates[stage] ?? 0).toLocaleString("en"),
      (microseconds[stage] ?? 0).toFixed(1),
      stage === 0 ? "" : ((microseconds[stage] ?? 0) - (microseconds[stage - 1] ?? 0)).toFixed(1),
      ((rates[stage] ?? 0) / (rates[0] ?? 1)).toFixed(2),
    ]),
  );
}

async function open(operation: string, stage: number) {
  const directory = workspace.makeDirectory(`${operation}-${stage}`);
  const port = findFreePort();
  const child = startChild({
    command: [bunPath, server, String(port), directory, operation, String(stage)],
  });
  for (;;) {
    const isUp = await fetch(`http://${loopback}:${port}/healthz`).then(
      () => true,
      () => false,
    );
    if (isUp) break;
    await Bun.sleep(20);
  }
  return { child, port, directory, rates: [] as number[] };
}

async function drive(operation: string, port: number, directory: string): Promise<number> {
  const token = readFileSync(join(directory, "token"), "utf8");
  const script = join(directory, "create.lua");
  const body = '{"name":"Monstera deliciosa","tag":"living room"}';
  writeFileSync(
    script,
    `wrk.method = "POST"\nwrk.body = '${body}'\nwrk.headers["Content-Type"] = "application/json"\n`,
  );
  const isList = operation === "list";
  const { standardOutput } = await runToEnd({
    command: [
      ...["wrk", "--threads=2", "--connections=64", `--duration=${roundSeconds}s`],
      ...["--header", `Authorization: Bearer ${token}`],
      ...(isList ? [] : [`--script=${script}`]),
      `http://${loopback}:${port}/plants${isList ? "?limit=20" : ""}`,
    ],
  });
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(standardOutput)?.[1]);
}
