/** How servers are reached: TLS as requested, reasons why they cannot be used. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import {
  makeDatabase,
  type PostgresServer,
  serverPassword,
  startPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { openPostgres } from "./engine.ts";

/** Servers take their time to start. */
setDefaultTimeout(120_000);

const certificates = join(import.meta.dir, "../../../test/certificates");
const authority = join(certificates, "authority.pem");

let server: PostgresServer;
let database: TestDatabase;

beforeAll(async () => {
  server = await startPostgres(["-c", "fsync=off"]);
  database = await makeDatabase(server, "plants");
});

afterAll(() => server.stop());

/** Opens it with these parameters in the URL: "encrypted", "plain", or why it cannot be opened. */
async function openWith(parameters: string, host = "localhost"): Promise<string> {
  const url = `postgres://postgres:${serverPassword}@${host}:${server.port}/plants?${parameters}`;
  let storage: Awaited<ReturnType<typeof openPostgres>>;
  try {
    storage = await openPostgres(url, { isServing: true });
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

describe("of a server without TLS", () => {
  test.each(["disable", "prefer"])("a connection with sslmode=%s is plain", async (mode) => {
    expect(await openWith(`sslmode=${mode}`)).toBe("plain");
  });

  test.each(["require", "verify-ca", "verify-full"])("sslmode=%s is refused", async (mode) => {
    expect(await openWith(`sslmode=${mode}`)).toContain("does not offer TLS");
  });
});

describe("of a server with TLS", () => {
  beforeAll(async () => {
    for (const [from, to] of [
      ["server.pem", "server.crt"],
      ["server-key.pem", "server.key"],
    ]) {
      const lines = readFileSync(join(certificates, from as string), "utf8")
        .trim()
        .split("\n");
      const rows = lines.map((line) => `('${line}')`).join(",");
      await database.query(`COPY (VALUES ${rows}) TO PROGRAM 'umask 077; cat > ${to}'`);
    }
    await database.query("ALTER SYSTEM SET ssl = on");
    await database.query("SELECT pg_reload_conf()");
    await waitFor(async () => {
      const [row] = await database.query("SHOW ssl");
      return row?.ssl === "on" ? true : undefined;
    });
  });

  test.each([
    ["", "localhost", "encrypted"],
    ["sslmode=disable", "localhost", "plain"],
    ["sslmode=prefer", "127.0.0.1", "encrypted"],
    ["sslmode=require", "127.0.0.1", "encrypted"],
    [`sslmode=verify-ca&sslrootcert=${authority}`, "127.0.0.1", "encrypted"],
    [`sslmode=verify-full&sslrootcert=${authority}`, "localhost", "encrypted"],
  ])("%s to %s is %s", async (parameters, host, expected) => {
    expect(await openWith(parameters, host)).toBe(expected);
  });

  test.each([
    ["another name", `sslmode=verify-full&sslrootcert=${authority}`, "127.0.0.1"],
    ["an authority that nobody named", "sslmode=verify-full", "localhost"],
    ["an authority that nobody named", "sslmode=verify-ca", "localhost"],
    [
      "another authority",
      `sslmode=require&sslrootcert=${join(certificates, "server.pem")}`,
      "127.0.0.1",
    ],
  ])("a certificate for or by %s is refused by %s", async (_, parameters, host) => {
    expect(await openWith(parameters, host)).toContain("its certificate is not trusted");
  });
});
