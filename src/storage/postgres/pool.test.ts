/** Connections that are lost while they idle or are made: replaced, and nobody notices. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { makeDatabase, sharedPostgres } from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** Short, so that what does not answer is given up while the test waits. */
const limits = { poolSize: 1, connectTimeoutMs: 2_000, statementTimeoutMs: 5_000 };

/** What becomes of the next connection when its check is answered. */
type Fate = "passed" | "lost" | "silent";

const shutdownText = "SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
const shutdownMessage = Buffer.from(
  `E\0\0\0${String.fromCharCode(4 + shutdownText.length)}${shutdownText}`,
);

/** Stands between a storage and its server. */
async function openRelay() {
  const { port: serverPort } = await sharedPostgres();
  const clients = new Set<Socket>();
  const relay = { next: "passed" as Fate, port: 0, cutAll };
  const listener = createServer((client) => {
    clients.add(client);
    const upstream = connect(serverPort, "127.0.0.1");
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes: Buffer) => {
      const isCheck = bytes.includes("transaction_read_only");
      if (relay.next === "passed" || !isCheck) return void client.write(bytes);
      const isSilent = relay.next === "silent";
      relay.next = "passed";
      if (isSilent) return;
      // Together, so that both are read before the first of them is acted upon.
      client.end(Buffer.concat([bytes, shutdownMessage]));
      upstream.destroy();
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  listener.unref();
  relay.port = (listener.address() as AddressInfo).port;
  return relay;

  function cutAll(): void {
    for (const client of clients) client.destroy();
    clients.clear();
  }
}

test.each(["lost", "silent"] as const)(
  "a connection that was lost is replaced, even if the next one is %s while it is made",
  async (fate) => {
    await using database = await makeDatabase();
    const relay = await openRelay();
    const url = database.url.replace(/@[^/]+/, `@127.0.0.1:${relay.port}`);
    const storage = await openPostgres(url, { isServing: true, limits });
    const loseConnections = async () => {
      relay.cutAll();
      await Bun.sleep(50);
      relay.next = fate;
    };
    await loseConnections();
    expect(await storage.list("home", undefined, 1)).toEqual([]);
    expect(relay.next).toBe("passed");
    await loseConnections();
    expect(await storage.apply([create({ id: 1n }), create()])).toHaveLength(2);
    expect(relay.next).toBe("passed");
    expect(await storage.list("home", undefined, 9)).toHaveLength(2);
    await storage.close();
  },
);
