/** A service that accepts requests and never responds: how long people wait before they see why. */
import { expect, test } from "bun:test";
import { createServer } from "node:net";
import { join } from "node:path";
import { PlantStoreUnreachable } from "../../client/plant-store.ts";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { runInProcess } from "../../testing/command.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { failure } from "../client/client-case.ts";

const token = makeToken("home");

/** Calls a service that hangs. Returns how often that was called. */
async function countCalls(call: (url: string) => Promise<unknown>): Promise<number> {
  let calls = 0;
  const server = createServer((socket) => {
    calls++;
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  try {
    await call(`http://127.0.0.1:${port}`);
  } finally {
    server.close();
  }
  return calls;
}

// Side by side, because they only wait.
test("commands and the console call it once, for 30 seconds, and say so", async () => {
  using folder = makeTemporaryFolder();
  const file = join(folder.path, "plants.csv");
  await Bun.write(file, "name\nFern\n");
  const commands = [["plants", "list"], ["plants", "add", "Fern"], ["whoami"], ["import", file]];
  const counting = commands.map((command) =>
    countCalls(async (url) => {
      const env = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
      const { exitCode, errors } = await runInProcess(command, env);
      expect(exitCode).toBe(6);
      expect(errors).toContain(`No response from ${url}: no response within 30000 ms.`);
    }),
  );
  const { Api } = await import(join(import.meta.dir, "../../console/api.ts"));
  const asking = countCalls(async (url) => {
    const { message } = await failure(new Api({ url, token }).me(), PlantStoreUnreachable);
    expect(message).toEndWith("in 1 tries: no response within 30000 ms");
  });
  expect(await Promise.all([...counting, asking])).toEqual([1, 1, 1, 1, 1]);
}, 120_000);
