/** A client that goes on following events after a backup was restored, on both engines. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { makePlace, type Place } from "../../testing/audited-store.ts";
import { runInProcess } from "../../testing/command.ts";
import { runStatement } from "../../testing/postgres-server.ts";
import { makeToken, serveHere } from "../../testing/running-service.ts";
import { problemOf } from "./client-case.ts";
import { next } from "./event-cases.ts";

/** Backs the store up, and returns how to restore it. */
async function backUpSqlite({ folder, database }: Place): Promise<() => Promise<unknown>> {
  const run = async (command: string) => {
    const args = [command, join(folder, "backup.db"), "--database", database];
    expect((await runInProcess(args)).exitCode).toBe(0);
  };
  await run("backup");
  return () => run("restore");
}

/** As pg_dump, pg_restore and the statement of docs/postgresql.md do it. */
async function backUpPostgres({ database }: Place): Promise<() => Promise<unknown>> {
  const tables = ["gardens", "plants", "events", "idempotency_keys"];
  const keep = tables.map((table) => `CREATE TABLE kept_${table} AS TABLE ${table};`);
  const refill = tables.map(
    (table) => `DELETE FROM ${table}; INSERT INTO ${table} TABLE kept_${table};`,
  );
  const page = await Bun.file(join(import.meta.dir, "../../docs/postgresql.md")).text();
  const raise = /^WITH .+\n.*UPDATE gardens SET last_event = .+;$/m.exec(page)?.[0] ?? "";
  await runStatement(database, keep.join(""));
  return () => runStatement(database, refill.join("") + raise);
}

test.each([
  ["sqlite", backUpSqlite],
  ["postgres", backUpPostgres],
] as const)(
  "on %s, it has to start again after a restored backup, and then goes on",
  async (engine, backUp) => {
    await using place = await makePlace(engine);
    const token = await makeToken(place, "ann");
    const use = async (work: (store: PlantStore) => Promise<unknown>) => {
      await using service = await serveHere({ database: place.database });
      await work(new PlantStore({ url: service.url, token }));
    };
    await use((store) => store.create({ name: "Moss" }));
    const restore = await backUp(place);
    await use((store) => store.create({ name: "Fern" }));
    await restore();
    let last = 0;
    await use(async (store) => {
      await store.create({ name: "Rose" });
      // However far they got, and even if as many events have happened since.
      for (const after of [0, 1, 2, 1_000_000]) {
        expect((await problemOf(next(store.events({ after })))).code).toBe("gone");
      }
      ({ lastEvent: last = 0 } = await store.me());
      expect(last).toBeGreaterThan(1_000_000);
      const { events } = await store.eventPage();
      expect(events.map(({ plant }) => plant.name)).toEqual(["Rose"]);
      expect((await next(store.events({ after: last - 1 }))).seq).toBe(last);
    });
    // On PostgreSQL, a second restore needs another statement: see docs/postgresql.md.
    if (engine === "postgres") return;
    await restore();
    await use(async (store) => {
      for (const name of ["Ivy", "Sage"]) await store.create({ name });
      expect((await problemOf(next(store.events({ after: last })))).code).toBe("gone");
    });
  },
  120_000,
);
