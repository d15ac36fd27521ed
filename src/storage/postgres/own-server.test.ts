/** What needs a server of its own: TLS as requested, and commits that wait for a standby. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  makeDatabase,
  type PostgresServer,
  serverPassword,
  startPostgres,
  type TestDatabase,
} from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, created, remove } from "../../../testing/tested-storage.ts";
import type { Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

/** Servers take their time to start. */
setDefaultTimeout(120_000);

const certificates = join(import.meta.dir, "../../../test/certificates");
const authority = join(certificates, "authority.pem");
const certificate = join(certificates, "server.pem");

let server: PostgresServer;
let database: TestDatabase;

beforeAll(async () => {
  const standby = ["-c", "synchronous_standby_names=nobody", "-c", "synchronous_commit=local"];
  server = await startPostgres(["-c", "fsync=off", ...standby]);
  database = await makeDatabase(server, "plants");
});

afterAll(() => server.stop());

/** Its commits wait for the standby, which is not there, only if they are to. */
async function open(url: string, isWaiting = false): Promise<Storage> {
  process.env.PGOPTIONS = `-c synchronous_commit=${isWaiting ? "on" : "local"}`;
  try {
    return await openPostgres(url, { isServing: true });
  } finally {
    delete process.env.PGOPTIONS;
  }
}

/** Opens it with these parameters in the URL: "encrypted", "plain", or why it cannot be opened. */
async function openWith(parameters: string, host = "localhost"): Promise<string> {
  const url = `postgres://postgres:${serverPassword}@${host}:${server.port}/plants?${parameters}`;
  let storage: Storage;
  try {
    storage = await open(url);
  } catch (error) {
    return (error as Error).message;
  }
  const [row] = await database.query(
    `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = 'plantstore'`,
  );
  await storage.close();
  return row?.ssl ? "encrypted" : "plain";
}

test.each([
  ["prefer", "plain"],
  ["require", "does not offer TLS"],
])("without TLS, sslmode=%s is: %s", async (mode, expected) => {
  expect(await openWith(`sslmode=${mode}`)).toContain(expected);
});

describe("of a server with TLS", () => {
  beforeAll(async () => {
    for (const [from, to] of Object.entries({ server: "server.crt", "server-key": "server.key" })) {
      const text = readFileSync(join(certificates, `${from}.pem`), "utf8").trim();
      await database.query(
        `COPY (SELECT unnest(string_to_array('${text}', E'\\n')))
           TO PROGRAM 'umask 077; cat > ${to}'`,
      );
    }
    await database.query("ALTER SYSTEM SET ssl = on");
    await database.query("SELECT pg_reload_conf()");
    await waitFor(async () => (await database.query("SHOW ssl"))[0]?.ssl === "on" || undefined);
  });

  const untrusted = "its certificate is not trusted";

  test.each([
    ["", "localhost", "encrypted"],
    ["sslmode=disable", "localhost", "plain"],
    ["sslmode=require", "127.0.0.1", "encrypted"],
    [`sslmode=verify-ca&sslrootcert=${authority}`, "127.0.0.1", "encrypted"],
    [`sslmode=verify-full&sslrootcert=${authority}`, "localhost", "encrypted"],
    // The certificate is for another name, or by an authority that nobody named, or another one.
    [`sslmode=verify-full&sslrootcert=${authority}`, "127.0.0.1", untrusted],
    ["sslmode=verify-ca", "localhost", untrusted],
    [`sslmode=require&sslrootcert=${certificate}`, "127.0.0.1", untrusted],
  ])("%s to %s is: %s", async (parameters, host, expected) => {
    expect(await openWith(parameters, host)).toContain(expected);
  });
});

const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 1_000 } });

test.each([
  ["terminate", "one statement", [keyed]],
  ["cancel", "a transaction", [keyed, remove(9n)]],
] as const)(
  "a commit that waits for a standby and is told not to (%s, %s) is not reported as done, and its key settles it",
  async (how, _, group) => {
    await using other = await makeDatabase(server);
    const storage = await open(other.url);
    const waiting = await open(other.url, true);
    const applying = waiting.apply(group).catch((error) => error);
    await waitFor(async () => {
      const struck = await other.query(
        `SELECT pg_${how}_backend(pid) FROM pg_stat_activity
           WHERE application_name = 'plantstore' AND wait_event_type = 'IPC'`,
      );
      return struck.length > 0 || undefined;
    });
    expect(await applying).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("outcome is unknown"),
    });
    await waiting.close();
    expect(await storage.apply([keyed])).toEqual([created(1n, true)]);
    await storage.close();
  },
);
