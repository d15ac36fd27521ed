/**
 * What a service finds around its tables: settings of the role and the database, and what other
 * roles have put there.
 */
import {
  afterAll,
  afterEach,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { startPooler } from "../../../test/transaction-pooler.ts";
import { defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { engineOf } from "../open.ts";
import { clientConfig } from "./connect.ts";
import { openPostgres } from "./engine.ts";
import { type Host, parseUrl } from "./url.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
const folder = makeTemporaryFolder();

afterAll(() => folder[Symbol.dispose]());

beforeEach(async () => {
  database = await makeDatabase();
});

afterEach(() => database.drop());

async function backUp(name: string): Promise<string> {
  const path = touch(join(folder.path, name));
  const options = { limits: defaultConnectionLimits, signal: new AbortController().signal };
  await engineOf(database.url).backup(database.url, path, options);
  return path;
}

function open(url = database.url): Promise<Storage> {
  return openPostgres(url, { isServing: true });
}

/** Why it cannot be opened. */
async function refusal(url?: string): Promise<string> {
  const failure = await open(url).catch((error) => error);
  return failure.message;
}

describe.each([
  ["synchronous_commit", "off"],
  ["client_min_messages", "error"],
])("where the role has %s = %s, answered writes could be lost", (name, value) => {
  beforeEach(() => database.query(`ALTER DATABASE ${database.name} SET ${name} = ${value}`));

  test("so connections set another", async () => {
    const url = parseUrl(database.url);
    const [host] = url.hosts as [Host];
    const route = { ...host, isEncrypted: false, takesOptions: true };
    const client = new Client(
      clientConfig({ url, limits: defaultConnectionLimits, schema: undefined }, route),
    );
    await client.connect();
    const { rows } = await client.query(`SHOW ${name}`);
    expect(rows[0][name]).not.toBe(value);
    await client.end();
    await (await open()).close();
  });

  test("so no service starts behind a pooler, which lets nobody set it", async () => {
    const pooler = await startPooler(database.url);
    const url = `postgres://anyone@127.0.0.1:${pooler.port}/${database.name}`;
    expect(await refusal(url)).toContain(`its ${name} is ${value}, so that answered writes could`);
    await pooler.stop();
  });
});

test.each([
  ["array_nulls", "off"],
  ["lock_timeout", "1"],
  ["transform_null_equals", "on"],
  ["standard_conforming_strings", "off"],
  ["default_transaction_isolation", "serializable"],
  ["default_transaction_deferrable", "on"],
  ["DateStyle", "'SQL, DMY'"],
  ["TimeZone", "'Asia/Kathmandu'"],
  ["extra_float_digits", "-15"],
])("where %s is %s, all is as usual", async (name, value) => {
  await database.query(`ALTER DATABASE ${database.name} SET ${name} = ${value}`);
  const storage = await open();
  const idempotency = { key: "\\k'", request: "r", nowMs: 1, expiresAtMs: 2 ** 52 };
  const keyed = create({ name: "\\n'", idempotency });
  expect(await storage.apply([create(), keyed])).toEqual([created(1n), created(2n)]);
  expect(await storage.apply([keyed])).toEqual([created(2n, true)]);
  expect(await storage.apply([remove(1n)])).toEqual([{ kind: "deleted" }]);
  expect(await storage.list("home", undefined, 9)).toMatchObject([{ id: 2n, name: "\\n'" }]);
  await storage.close();
});

describe("where a transaction may take or idle for a second", () => {
  beforeEach(async () => {
    const storage = await open();
    await storage.apply([create()]);
    await storage.close();
    for (const name of ["transaction_timeout", "idle_in_transaction_session_timeout"]) {
      await database.query(`ALTER DATABASE ${database.name} SET ${name} = '1s'`);
    }
  });

  test("a backup takes its time", async () => {
    const intruder = new Client(database.url);
    await intruder.connect();
    await intruder.query("SET transaction_timeout = 0");
    await intruder.query("SET idle_in_transaction_session_timeout = 0");
    await intruder.query("BEGIN; LOCK plants IN ACCESS EXCLUSIVE MODE");
    const backingUp = backUp("slow.db");
    await Bun.sleep(1_500);
    await intruder.end();
    await backingUp;
  });

  test("a request that would take longer is unavailable, and nothing is broken", async () => {
    const intruder = new Client(database.url);
    await intruder.connect();
    await intruder.query("SET transaction_timeout = 0");
    await intruder.query("SET idle_in_transaction_session_timeout = 0");
    await intruder.query("BEGIN");
    await intruder.query("LOCK plants");
    const storage = await open();
    const work = [storage.list("home", undefined, 10), storage.apply([create()])];
    const failures = await Promise.all(work.map((each) => each.catch((error) => error)));
    await intruder.end();
    expect(failures.map(({ code }) => code)).toEqual(["unavailable", "unavailable"]);
    expect(failures[1].message).toContain("outcome is unknown");
    expect(await storage.list("home", undefined, 10)).toHaveLength(1);
    await storage.close();
  });
});

test("where the search path leads nowhere, that is said", async () => {
  await database.query(`ALTER DATABASE ${database.name} SET search_path = nowhere`);
  expect(await refusal()).toContain("no schema of the role's search path is there");
});

/**
 * Every operator on two of these types that PostgreSQL lacks, and functions that take a narrower
 * type than its own: they fit better than what converts.
 */
const traps = `
  CREATE FUNCTION spring() RETURNS bigint LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the service ran what another role made'; END $$;
  CREATE FUNCTION pg_advisory_xact_lock(integer) RETURNS bigint RETURN spring();
  CREATE FUNCTION has_table_privilege(text, name) RETURNS boolean RETURN spring() > 0;
  CREATE FUNCTION max(integer) RETURNS bigint RETURN spring();
  DO $$
  DECLARE trap record;
  BEGIN
    FOR trap IN
      SELECT one, other, sign FROM unnest('{int4,int8,numeric,float8,text,name}'::regtype[]) AS one
        CROSS JOIN unnest('{int4,int8,numeric,float8,text,name}'::regtype[]) AS other
        CROSS JOIN unnest('{+,-,*,=,<,>,<=,>=,||}'::text[]) AS sign
        WHERE NOT EXISTS (SELECT FROM pg_operator
          WHERE oprname = sign AND oprleft = one AND oprright = other)
    LOOP
      EXECUTE format('CREATE OR REPLACE FUNCTION trap(%1$s, %2$s) RETURNS bigint RETURN spring();
        CREATE OPERATOR %3$s (FUNCTION = trap, LEFTARG = %1$s, RIGHTARG = %2$s)',
        trap.one, trap.other, trap.sign);
    END LOOP;
  END $$`;

test("what other roles have put on the search path is not run", async () => {
  await database.query(traps);
  const limited = { isServing: true, plantsMax: 3 };
  const storages = [await open(), await openPostgres(database.url, limited)];
  const idempotency = { key: "k", request: "r", nowMs: 0, expiresAtMs: 1_000 };
  for (const storage of storages) {
    await storage.apply([create()]);
    await storage.apply([create({ id: 2n ** 53n - 3n, garden: "far" }), create({ idempotency })]);
    await storage.apply([remove(1n), create({ garden: "far" })]);
    await storage.apply([remove(2n)]);
    await storage.list("home", 1n, 10);
    await storage.seek("home", 1n, 10);
    await storage.forgetKeys(2_000);
    await storage.noteTokenUses([{ id: "t", usedAtMs: 1 }]);
    await storage.revokeToken("t", 1);
    await storage.listTokens();
    await storage.buckets?.pour([{ key: 1, levelMs: 5 }]);
    await storage.buckets?.pour([{ key: 1, levelMs: 5 }]);
    await storage.buckets?.forgetEmpty();
    await storage.close();
  }
  const path = await backUp("trapped.db");
  await database.query("TRUNCATE plants, gardens, idempotency_hashes, tokens");
  const { signal } = new AbortController();
  const options = { limits: defaultConnectionLimits, signal, mayReplace: false };
  const makeFile = async (target: string) => copyFileSync(path, target);
  await engineOf(database.url).restore(database.url, options, makeFile);
});
