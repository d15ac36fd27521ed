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

/** A server takes a while to start. */
setDefaultTimeout(120_000);

const certificates = join(import.meta.dir, "../../../test/certificates");
const authority = join(certificates, "authority.pem");
const certificate = join(certificates, "server.pem");

let server: PostgresServer;
let database: TestDatabase;

beforeAll(async () => {
  // A standby that doesn't exist, which only some connections wait for.
  const standby = ["-c", "synchronous_standby_names=nobody", "-c", "synchronous_commit=local"];
  server = await startPostgres(["-c", "fsync=off", ...standby]);
  database = await makeDatabase(server, "plants");
});

afterAll(() => server.stop());

/** With "on", its commits wait for the standby; with "local", they don't. */
async function open(url: string, synchronousCommit: "on" | "local"): Promise<Storage> {
  process.env.PGOPTIONS = `-c synchronous_commit=${synchronousCommit}`;
  try {
    return await openPostgres(url, { isServing: true });
  } finally {
    delete process.env.PGOPTIONS;
  }
}

/** Connects with these parameters in the URL. Returns how, or why that failed. */
async function connect(host: string, parameters: string): Promise<string> {
  const url = `postgres://postgres:${serverPassword}@${host}:${server.port}/plants?${parameters}`;
  let storage: Storage;
  try {
    storage = await open(url, "local");
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

describe("to a server without TLS,", () => {
  test("sslmode=prefer connects without encryption", async () => {
    expect(await connect("localhost", "sslmode=prefer")).toBe("plain");
  });

  test("sslmode=require doesn't connect", async () => {
    expect(await connect("localhost", "sslmode=require")).toContain("does not offer TLS");
  });
});

/** Its certificate is for localhost, and by an authority that only the tests know. */
describe("to a server with TLS,", () => {
  /** Writes a file into the server's folder, which only its own user can write. */
  async function copyToServer(source: string, name: string): Promise<void> {
    const text = readFileSync(source, "utf8").trim();
    await database.query(
      `COPY (SELECT unnest(string_to_array('${text}', E'\\n')))
         TO PROGRAM 'umask 077; cat > ${name}'`,
    );
  }

  beforeAll(async () => {
    await copyToServer(certificate, "server.crt");
    await copyToServer(join(certificates, "server-key.pem"), "server.key");
    await database.query("ALTER SYSTEM SET ssl = on");
    await database.query("SELECT pg_reload_conf()");
    await waitFor(async () => (await database.query("SHOW ssl"))[0]?.ssl === "on" || undefined);
  });

  test("connections are encrypted unless the URL says otherwise", async () => {
    expect(await connect("localhost", "")).toBe("encrypted");
  });

  test("sslmode=disable connects without encryption", async () => {
    expect(await connect("localhost", "sslmode=disable")).toBe("plain");
  });

  test("sslmode=require accepts any certificate", async () => {
    expect(await connect("127.0.0.1", "sslmode=require")).toBe("encrypted");
  });

  test("sslmode=require with another authority refuses the certificate", async () => {
    const shown = await connect("127.0.0.1", `sslmode=require&sslrootcert=${certificate}`);
    expect(shown).toContain("its certificate is not trusted");
  });

  test("sslmode=verify-ca accepts a certificate of the authority for another name", async () => {
    const shown = await connect("127.0.0.1", `sslmode=verify-ca&sslrootcert=${authority}`);
    expect(shown).toBe("encrypted");
  });

  test("sslmode=verify-ca refuses a certificate of an unknown authority", async () => {
    const shown = await connect("localhost", "sslmode=verify-ca");
    expect(shown).toContain("its certificate is not trusted");
  });

  test("sslmode=verify-full accepts a certificate of the authority for this name", async () => {
    const shown = await connect("localhost", `sslmode=verify-full&sslrootcert=${authority}`);
    expect(shown).toBe("encrypted");
  });

  test("sslmode=verify-full refuses a certificate for another name", async () => {
    const shown = await connect("127.0.0.1", `sslmode=verify-full&sslrootcert=${authority}`);
    expect(shown).toContain("its certificate is not trusted");
  });
});

const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 1_000 } });

test.each([
  {
    commit: "a commit of one statement",
    interruption: "terminated",
    statement: "pg_terminate_backend",
    group: [keyed],
  },
  {
    commit: "a commit of a transaction",
    interruption: "canceled",
    statement: "pg_cancel_backend",
    group: [keyed, remove(9n)],
  },
])(
  "if $commit is $interruption while it waits for a standby, its key settles the unknown outcome",
  async ({ statement, group }) => {
    await using other = await makeDatabase(server);
    const storage = await open(other.url, "local");
    const waiting = await open(other.url, "on");

    const applying = waiting.apply(group).catch((error) => error);
    await waitFor(async () => {
      const interrupted = await other.query(
        `SELECT ${statement}(pid) FROM pg_stat_activity
           WHERE application_name = 'plantstore' AND wait_event_type = 'IPC'`,
      );
      return interrupted.length > 0 || undefined;
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
