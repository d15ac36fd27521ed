/** Row-level security, by which a server leaves out rows of what is read and does not say so. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** A busy machine takes its time to connect. */
const limits = { ...defaultConnectionLimits, connectTimeoutMs: 20_000 };
let database: TestDatabase;
let role: string;
let url: string;

const open = (address = url): Promise<Storage> =>
  openPostgres(address, { isServing: true, limits });
const secure = (how: "ENABLE" | "DISABLE") =>
  database.query(`ALTER TABLE plants ${how} ROW LEVEL SECURITY`);
const failureOf = (work: Promise<unknown>): Promise<{ code?: string; message: string }> =>
  work.then(
    () => ({ message: "It did not fail." }),
    (error) => error,
  );
const list = (storage: Storage) => storage.list("home", undefined, 10);

beforeEach(async () => {
  database = await makeDatabase();
  // First, because it is dropped whatever fails here.
  role = `${database.name}_reader`;
  await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  const owner = await open(database.url);
  await owner.apply([create(), create()]);
  await owner.close();
  await database.query(
    `GRANT ALL ON SCHEMA public TO ${role};
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
     CREATE POLICY visible ON plants TO ${role} USING (id <> 1)`,
  );
  url = database.url.replace(/\/\/[^@]+@/, `//${role}:secret@`);
});

afterEach(async () => {
  await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  await database.drop();
});

const reason = "the role lacks rights: BYPASSRLS on plants.";

test("where it may hide plants, no service starts", async () => {
  await secure("ENABLE");
  expect((await failureOf(open())).message).toEndWith(reason);
});

test("switched on later, it hides nothing: everything is refused until it is off again", async () => {
  const storage = await open();
  expect(await list(storage)).toHaveLength(2);
  await secure("ENABLE");
  const work = [list(storage), storage.apply([remove(1n)]), storage.apply([create()])];
  const failures = await Promise.all(work.map(failureOf));
  expect(failures.map(({ code }) => code)).toEqual(work.map(() => "unavailable"));
  await secure("DISABLE");
  expect(await waitFor(() => list(storage).catch(() => undefined))).toHaveLength(2);
  expect(await storage.apply([remove(1n), create()])).toEqual([{ kind: "deleted" }, created(3n)]);
  await storage.close();
});
