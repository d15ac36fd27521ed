/** What a command does when its terminal is closed. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const module = JSON.stringify(join(import.meta.dir, "stop-signals.ts"));
const code = `
  import { onStopSignal } from ${module};
  const stopped = new Promise((resolve) => onStopSignal(resolve, 1));
  const over = Bun.sleep(300).then(() => "nothing");
  process.kill(process.pid, "SIGHUP");
  process.stdout.write(await Promise.race([stopped, over]));
`;

test.skipIf(process.platform !== "linux").each([
  ["is told", "", "SIGHUP"],
  ["goes on under nohup", "trap '' HUP;", "nothing"],
])("a command whose terminal is closed %s", async (_, before, heard) => {
  const line = `${before} exec "$@"`;
  const child = Bun.spawn(["sh", "-c", line, "sh", process.execPath, "-e", code]);
  expect([await new Response(child.stdout).text(), await child.exited]).toEqual([heard, 0]);
});
