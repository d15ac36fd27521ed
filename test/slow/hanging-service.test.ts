/** A service that accepts requests and never responds: how long people wait before they see why. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer } from "node:net";
import { join } from "node:path";
import { PlantStoreUnreachable } from "../../client/plant-store.ts";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { runInProcess } from "../../testing/command.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { failure } from "../client/client-case.ts";

setDefaultTimeout(120_000);

const token = makeToken("home");

/** Accepts connections, counts them, and never sends a byte. */
async function startHangingService() {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    countConnections: () => connections,
    [Symbol.dispose]() {
      server.close();
    },
  };
}

// Side by side, because they only wait.
describe.concurrent("a service that hangs is called once, for 30 seconds, by", () => {
  test.each(["plants list", "plants add Fern", "whoami"])(
    "plantstore %s, which then says so",
    async (command) => {
      using service = await startHangingService();
      const env = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };

      const { exitCode, errors } = await runInProcess(command, env);

      expect(exitCode).toBe(6);
      expect(errors).toContain(`No response from ${service.url}: no response within 30000 ms.`);
      expect(service.countConnections()).toBe(1);
    },
  );

  test("plantstore import, which then says so", async () => {
    using service = await startHangingService();
    const env = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
    using folder = makeTemporaryFolder();
    const file = join(folder.path, "plants.csv");
    await Bun.write(file, "name\nFern\n");

    const { exitCode, errors } = await runInProcess(["import", file], env);

    expect(exitCode).toBe(6);
    expect(errors).toContain(`No response from ${service.url}: no response within 30000 ms.`);
    expect(service.countConnections()).toBe(1);
  });

  test("the console, which then says so", async () => {
    using service = await startHangingService();
    // A type check of this file must not need the browser's types.
    const { Api } = await import(join(import.meta.dir, "../../console/api.ts"));
    const api = new Api({ url: service.url, token });

    const { message } = await failure(api.me(), PlantStoreUnreachable);

    expect(message).toEndWith("in 1 tries: no response within 30000 ms");
    expect(service.countConnections()).toBe(1);
  });
});
