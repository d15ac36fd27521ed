/**
 * The real program on PostgreSQL: two instances, and every reason not to start, without a secret.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, sharedPostgres, type TestDatabase } from "../postgres-server.ts";
import { runProgram, startService } from "./running-service.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await makeDatabase();
});

afterAll(() => database.drop());

describe("two instances on one database", () => {
  test("share plants, keys and tokens, and log no password", async () => {
    const own = await makeDatabase();
    await using first = await startService({ database: own.url });
    await using second = await startService({ database: own.url });
    const { token } = first;
    expect(second.token).toBe("");
    const plant = { method: "POST", body: '{"name":"Fern"}', headers: { "Idempotency-Key": "k" } };
    const created = await first.call("POST /plants", plant);
    const again = await second.call("POST /plants", { ...plant, token });
    expect([created.status, again.status]).toEqual([201, 201]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await (await second.call("GET /plants", { token })).json()).toHaveLength(1);
    expect((await second.call("GET /readyz")).status).toBe(200);

    for (const service of [first, second]) {
      service.signal("SIGTERM");
      expect(await service.exited).toBe(0);
      const { out, errors } = service.output();
      expect(out + errors).not.toContain(new URL(own.url).password);
      expect(out).toContain(`"database":"postgres://postgres@127.0.0.1:`);
    }
    await own.drop();
  }, 120_000);
});

test(
  "a garden that another program has locked holds up no other garden's writes",
  async () => {
    await using own = await makeDatabase();
    await using service = await startService({ database: own.url });
    const made = await runProgram(["token", "create", "other", "--database", own.url]);
    expect(made).toMatchObject({ exitCode: 0 });
    const body = '{"name":"Fern"}';
    const write = (token = service.token) => service.call("POST /plants", { body, token });
    expect((await write()).status).toBe(201);

    const intruder = new Client(own.url);
    await intruder.connect();
    await intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'gardener' FOR UPDATE");
    const held: Promise<number | string>[] = [];
    let worstMs = 0;
    try {
      for (const untilMs = performance.now() + 2_000; performance.now() < untilMs; ) {
        if (held.length < 40) held.push(write().then(({ status }) => status, String));
        const startedMs = performance.now();
        expect((await write(made.out.trim())).status).toBe(201);
        worstMs = Math.max(worstMs, performance.now() - startedMs);
      }
    } finally {
      await intruder.end();
    }
    // As long as a lock is waited for, twice, and not as long as a statement may take.
    expect(worstMs).toBeLessThan(1_500);
    expect(new Set(await Promise.all(held))).toEqual(new Set([201]));
  },
  { timeout: 120_000, retry: 2 },
);

test("the password may be in PGPASSWORD instead of the URL", async () => {
  const { password } = new URL(database.url);
  const finished = await runProgram(["token", "create", "alice"], {
    PLANTSTORE_DATABASE: database.url.replace(`:${password}`, ""),
    PGPASSWORD: password,
  });
  expect(finished.exitCode).toBe(0);
  expect(finished.errors).not.toContain(password);
});

describe("it does not start, and says why in one line without a secret, when", () => {
  const secret = "s3cret-of-the-role";

  /** The line that it ends with. */
  async function reasonFor(url: string, ...flags: string[]): Promise<string> {
    const args = ["serve", "--port", "0", ...flags];
    const finished = await runProgram(args, { PLANTSTORE_DATABASE: url });
    expect(finished).toMatchObject({ exitCode: 1, out: "" });
    expect(finished.errors).toMatch(/^plantstore: .+\n$/);
    expect(finished.errors).not.toContain(secret);
    return finished.errors;
  }

  async function addressOf(path: string, user = "postgres"): Promise<string> {
    const { port } = await sharedPostgres();
    return `postgres://${user}:${secret}@127.0.0.1:${port}/${path}`;
  }

  /** A role of its own, with the password that must not be shown. */
  async function makeRole(): Promise<string> {
    const name = `role_${Bun.nanoseconds()}`;
    await database.query(`CREATE ROLE ${name} LOGIN PASSWORD '${secret}'`);
    return name;
  }

  test("the password is wrong, there is no such database, or nothing is at any address", async () => {
    expect(await reasonFor(await addressOf(database.name))).toContain(
      "the user or the password is wrong",
    );
    expect(await reasonFor(await addressOf("nowhere", await makeRole()))).toContain(
      'there is no database "nowhere"',
    );
    const nowhere = await reasonFor(`postgres://u:${secret}@127.0.0.1:1,nope.invalid/x`);
    expect(nowhere).toContain("127.0.0.1:1: nothing listens there; nope");
    expect(nowhere).toContain("the host is not known");
  });

  test("the host does not answer", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const url = `postgres://u:${secret}@127.0.0.1:${silent.port}/x`;
    const reason = await reasonFor(url, "--database-connect-timeout-ms", "200");
    expect(reason).toContain("the host does not answer");
    silent.stop(true);
  });

  test.each<[why: string, statements: (name: string) => string[], reason: string]>([
    [
      "the server is older than 15",
      (name) => [
        `CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS
           $$ SELECT 'PostgreSQL 14.9 on a machine' $$`,
        `ALTER DATABASE ${name} SET search_path = public, pg_catalog`,
      ],
      "it is PostgreSQL 14, and 15 or later is needed",
    ],
    [
      "the server takes no writes",
      (name) => [`ALTER DATABASE ${name} SET default_transaction_read_only = on`],
      "takes no writes",
    ],
    ["the role may not make the tables", () => [], "the role lacks rights on it"],
  ])("%s", async (_, statements, reason) => {
    await using own = await makeDatabase();
    for (const statement of statements(own.name)) await own.query(statement);
    expect(await reasonFor(await addressOf(own.name, await makeRole()))).toContain(reason);
  });

  test("the role may not use the tables, or not all of them", async () => {
    const own = await makeDatabase();
    await runProgram(["token", "create", "alice", "--database", own.url]);
    const role = await makeRole();
    const url = await addressOf(own.name, role);
    expect(await reasonFor(url)).toContain("the role lacks rights");
    await own.query(
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role}`,
    );
    await own.query(`REVOKE DELETE ON plants FROM ${role}`);
    expect(await reasonFor(url)).toContain("the role lacks rights: DELETE on plants");
    await own.drop();
  });
});
