/** The log's way out: it holds what a reader does not take, then drops and says so. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { createLog } from "../log.ts";
import { createLogOutput } from "./log-output.ts";

const line = `${"x".repeat(8191)}\n`;

function openOutput() {
  const output = { taken: "", isStuck: false };
  const take = (bytes: Uint8Array) => {
    if (output.isStuck) throw Object.assign(new Error("EAGAIN"), { code: "EAGAIN" });
    // Never more than 1,000 bytes at a time, as a pipe may do.
    const part = bytes.subarray(0, 1_000);
    output.taken += Buffer.from(part).toString();
    return part.length;
  };
  const log = createLog("text", (text) => write(text));
  const write = createLogOutput(take, (droppedBytes) =>
    log.event("warn", "log lines dropped", { droppedBytes }),
  );
  return { output, write };
}

test("drops what is too much, and logs how much once the reader is back", async () => {
  const { output, write } = openOutput();
  output.isStuck = true;
  for (let lines = 0; lines < 625; lines++) write(line);
  output.isStuck = false;
  await waitFor(() => output.taken.includes("dropped") || undefined);
  const last = output.taken.trimEnd().split("\n").at(-1) ?? "";
  expect(last).toEndWith(`  warn: log lines dropped droppedBytes=${904 * 1024}`);
});

test("a socket that nobody reads, as the journal's may be, holds nothing up", async () => {
  using folder = makeTemporaryFolder();
  const done = join(folder.path, "done");
  const script = `
    import { openLogOutput } from ${JSON.stringify(join(import.meta.dir, "log-output.ts"))};
    const writeLog = openLogOutput(() => {});
    for (let lines = 0; lines < 250; lines++) writeLog(${JSON.stringify(line)});
    await Bun.write(${JSON.stringify(done)}, "");
  `;
  // What the runtime calls a pipe is a socket, and is read in turns of the event loop only.
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  for (let tries = 0; tries < 1_200 && !existsSync(done); tries++) Bun.sleepSync(50);
  child.kill("SIGKILL");
  await child.exited;
  expect(existsSync(done)).toBe(true);
});
