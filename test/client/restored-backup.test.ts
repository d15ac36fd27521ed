/** A client that goes on following events after a backup was restored, on both engines. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { makePlace, type Place } from "../../testing/audited-store.ts";
import { runInProcess } from "../../testing/command.ts";
import { runStatement } from "../../testing/postgres-server.ts";
import { makeToken, serveHere } from "../../testing/running-service.ts";
import { problemOf } from "./client-case.ts";
import { next } from "./event-cases.ts";

type Restore = () => Promise<void>;

/** Backs the store up, and returns how to restore it. */
async function backUpSqlite({ folder, database }: Place): Promise<Restore> {
  const backup = join(folder, "backup.db");
  const backedUp = await runInProcess(["backup", backup, "--database", database]);
  expect(backedUp.exitCode).toBe(0);
  return async () => {
    const restored = await runInProcess(["restore", backup, "--database", database]);
    expect(restored.exitCode).toBe(0);
  };
}

/** As pg_dump, pg_restore and the statement of docs/postgresql.md do it. */
async function backUpPostgres({ database }: Place): Promise<Restore> {
  const tables = ["gardens", "plants", "events", "idempotency_keys"];
  const page = await Bun.file(join(import.meta.dir, "../../docs/postgresql.md")).text();
  const [raiseLastEvents = ""] =
    /^WITH .+\n.*UPDATE gardens SET last_event = .+;$/m.exec(page) ?? [];
  for (const table of tables) {
    await runStatement(database, `CREATE TABLE kept_${table} AS TABLE ${table}`);
  }
  return async () => {
    const refills = tables.map(
      (table) => `DELETE FROM ${table}; INSERT INTO ${table} TABLE kept_${table};`,
    );
    await runStatement(database, refills.join("") + raiseLastEvents);
  };
}

/** Starts a service on the store, and stops it after the work. */
async function useStore<Result>(
  { database }: Place,
  token: string,
  work: (store: PlantStore) => Promise<Result>,
): Promise<Result> {
  await using service = await serveHere({ database });
  return await work(new PlantStore({ url: service.url, token }));
}

describe.each([
  { engine: "sqlite", backUp: backUpSqlite },
  { engine: "postgres", backUp: backUpPostgres },
] as const)(
  "on $engine, after a backup was restored and a plant created,",
  ({ engine, backUp }) => {
    let place: Place;
    let token: string;
    let service: Awaited<ReturnType<typeof serveHere>>;
    let store: PlantStore;

    beforeAll(async () => {
      place = await makePlace(engine);
      token = await makeToken(place, "ann");
      await useStore(place, token, (before) => before.create({ name: "Moss" }));
      const restore = await backUp(place);
      await useStore(place, token, (before) => before.create({ name: "Fern" }));
      await restore();
      service = await serveHere({ database: place.database });
      store = new PlantStore({ url: service.url, token });
      await store.create({ name: "Rose" });
    }, 120_000);
    afterAll(async () => {
      await service[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    });

    // Even where as many events have happened since.
    test.each([0, 1, 2, 1_000_000])("a client can't go on after the event %i", async (after) => {
      const { code } = await problemOf(next(store.events({ after })));

      expect(code).toBe("gone");
    });

    test("events skip a million numbers", async () => {
      const { lastEvent } = await store.me();

      expect(lastEvent).toBeGreaterThan(1_000_000);
    });

    test("only the events since then are kept", async () => {
      const { events } = await store.eventPage();

      expect(events.map(({ plant }) => plant.name)).toEqual(["Rose"]);
    });

    test("a client goes on after a number that it has read since", async () => {
      const { lastEvent = 0 } = await store.me();

      const event = await next(store.events({ after: lastEvent - 1 }));

      expect(event.seq).toBe(lastEvent);
    });
  },
);

// On PostgreSQL, a second restore needs another statement: see docs/postgresql.md.
test("on sqlite, a client has to start over after each restore of a backup", async () => {
  await using place = await makePlace("sqlite");
  const token = await makeToken(place, "ann");
  const createPlants = (...names: readonly string[]) =>
    useStore(place, token, async (store) => {
      for (const name of names) await store.create({ name });
      return (await store.me()).lastEvent ?? 0;
    });
  await createPlants("Moss");
  const restore = await backUpSqlite(place);
  await createPlants("Fern");
  await restore();
  const afterFirstRestore = await createPlants("Rose");
  await restore();
  await createPlants("Ivy", "Sage");

  const { code } = await useStore(place, token, (store) =>
    problemOf(next(store.events({ after: afterFirstRestore }))),
  );

  expect(code).toBe("gone");
}, 120_000);
