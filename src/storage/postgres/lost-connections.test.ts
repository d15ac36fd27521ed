/** Connections that are lost, fall silent or lead to the wrong server, and outages. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { Relay } from "../../../test/postgres-relay.ts";
import {
  makeDatabase,
  runStatement,
  sharedPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage/tested-storage.ts";
import type { ConnectionLimits, Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** Short, so that the test doesn't wait long for what doesn't respond. */
const limits = { poolSize: 1, connectTimeoutMs: 10_000, statementTimeoutMs: 5_000 };

let database: TestDatabase;
let relay: Relay;
let storage: Storage;

/** A busy machine may take longer to connect than a short limit allows. */
async function open(changed: Partial<ConnectionLimits> = {}): Promise<void> {
  const options = { isServing: true, limits: { ...limits, ...changed } };
  storage = await waitFor(() =>
    openPostgres(relay.urlOf(database), options).catch(() => undefined),
  );
}

beforeEach(async () => {
  database = await makeDatabase();
  relay = await Relay.start();
});

afterEach(async () => {
  await storage.close();
  await database.drop();
});

const list = () => storage.list("home", undefined, 9);

/** What a call ends as. */
const outcomeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    ({ code }) => code,
  );

test("a connection that was lost is replaced, even if the next one is lost while it is made", async () => {
  await open();
  const loseConnections = async () => {
    await relay.cutAll();
    relay.next = "lost";
  };
  await loseConnections();
  expect(await list()).toEqual([]);
  expect(relay.next).toBe("passed");
  await loseConnections();
  expect(await storage.apply([create({ id: 1n }), create()])).toHaveLength(2);
  expect(relay.next).toBe("passed");
  expect(await list()).toHaveLength(2);
});

test("a server that accepts connections and doesn't respond gets one try per call", async () => {
  await open({ connectTimeoutMs: 1_000 });
  relay.isSilent = true;
  await relay.cutAll();
  const calls = [
    list,
    () => storage.apply([create()]),
    () => storage.apply([create({ id: 7n })]),
    () => storage.ping(),
  ];
  relay.connections = 0;
  for (const call of calls) expect(await outcomeOf(call())).toBe("unavailable");
  await waitFor(() => relay.connections === calls.length || undefined);
  relay.isSilent = false;
  expect(await waitFor(() => list().catch(() => undefined))).toEqual([]);
});

describe("while no connection can be made,", () => {
  test("calls wait, and succeed if it is over before the connect timeout", async () => {
    await open();
    relay.hasServer = false;
    await relay.cutAll();
    const before = relay.connections;
    const calls = [list(), storage.apply([create({ id: 7n })]), storage.apply([create()])];
    // Each has tried.
    await waitFor(() => relay.connections > before + calls.length || undefined);
    relay.hasServer = true;
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "fulfilled",
    ]);
    expect(await list()).toHaveLength(2);
  });

  test("calls fail after the connect timeout, and later ones with one try", async () => {
    await open();
    relay.hasServer = false;
    await relay.cutAll();
    relay.connections = 0;
    let nowMs = performance.now();
    using _ = spyOn(performance, "now").mockImplementation(() => nowMs);
    const failing = Promise.all([list(), storage.apply([create()])].map(outcomeOf));
    // They try again and again.
    await waitFor(() => relay.connections > 4 || undefined);
    nowMs += limits.connectTimeoutMs;
    expect(await failing).toEqual(["unavailable", "unavailable"]);
    relay.connections = 0;
    expect(await outcomeOf(list())).toBe("unavailable");
    expect(relay.connections).toBe(1);
    relay.hasServer = true;
    expect(await list()).toEqual([]);
  });

  test("a ping fails at once, with the reason as its cause", async () => {
    await open();
    relay.hasServer = false;
    await relay.cutAll();
    const failure = await storage.ping().catch((error) => error);
    expect(failure).toMatchObject({ code: "unavailable", cause: { cause: expect.any(Error) } });
    relay.hasServer = true;
    await storage.ping();
  });
});

test("when one connection falls silent, the others are replaced with it", async () => {
  await open({ poolSize: 4 });
  // Several at once, each with a connection of its own.
  await Promise.all([list(), storage.apply([create()]), storage.list("home", 0n, 99)]);
  expect(storage.pool?.()?.idle).toBeGreaterThan(1);
  relay.silenceAll();
  const before = relay.connections;
  expect(await outcomeOf(list())).toBe("unavailable");
  // At once, on a new connection: another silent one would fail, too.
  expect(await outcomeOf(list())).toBe("done");
  expect(relay.connections).toBeGreaterThan(before);
});

test("a new connection to a server that takes no writes is dropped", async () => {
  await open({ connectTimeoutMs: 2_000 });
  const server = (await sharedPostgres()).url("postgres");
  const alter = (change: string) =>
    runStatement(server, `ALTER DATABASE ${database.name} ${change}`);
  await alter("SET default_transaction_read_only = on");
  await relay.cutAll();
  // A busy machine may not get as far as to find out.
  await waitFor(async () => {
    const { code, cause } = await storage.apply([create()]).catch((error) => error);
    expect(code).toBe("unavailable");
    return cause.cause?.code === "READ_ONLY" || undefined;
  });
  // Reads don't use it either: they could be stale.
  expect(await outcomeOf(list())).toBe("unavailable");
  await alter("RESET default_transaction_read_only");
  expect(await waitFor(() => storage.apply([create()]).catch(() => undefined))).toHaveLength(1);
});
