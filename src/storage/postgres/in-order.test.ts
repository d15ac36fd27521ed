/** What is told of a group of writes whose transaction is refused. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { ClientBase } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, remove } from "../../../test/storage-contract/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { parseAddress } from "./address.ts";
import { Attempts } from "./attempts.ts";
import { openPostgres } from "./engine.ts";
import { Primary, type UseOptions } from "./primary.ts";
import { createWriter } from "./writer.ts";

setDefaultTimeout(60_000);

/** As if somebody cancelled every statement that begins a transaction, and no other. */
class Cancelling extends Primary {
  override use<Result>(work: (client: never) => Promise<Result>, options?: UseOptions) {
    return super.use((client) => work(cancelling(client) as never), options);
  }
}

function cancelling(client: ClientBase): ClientBase {
  const query = (text: string, values?: unknown[]) =>
    client.query(text.startsWith("BEGIN") ? cancelled : text, values);
  return new Proxy(client, {
    get(target, name) {
      if (name === "query") return query;
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const cancelled = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57014'; END $$";

let database: TestDatabase;
let storage: Storage;
let primary: Primary;

beforeEach(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true });
  primary = new Cancelling(parseAddress(database.url), defaultConnectionLimits);
  await primary.open();
});

afterEach(async () => {
  await primary.close();
  await storage.close();
  await database.drop();
});

test("the outcome is unknown when no transaction was begun, for deletions have happened", async () => {
  await storage.apply([create()]);
  const { apply } = createWriter(new Attempts(primary));
  const failure = await apply([remove(1n), create({ id: 2n })]).catch((error) => error);
  expect(failure).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
  });
  expect(await storage.list("home", undefined, 10)).toEqual([]);
});
