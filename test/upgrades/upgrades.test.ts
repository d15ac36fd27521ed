/**
 * The data of released versions, with this version: nothing is lost, and all of it still works.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import { serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import type { KeptAnswers } from "./keep-data.ts";

type Engine = "sqlite" | "postgres";

const versions = join(import.meta.dir, "versions");
const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** What callers received from the old version. */
async function readKeptAnswers(version: string, engine: Engine): Promise<KeptAnswers> {
  const answers = await Bun.file(join(versions, version, "answers.json")).json();
  return answers[engine];
}

/** The last part of a plant's path. */
function readId(location: string | null): number {
  return Number(location?.split("/").at(-1));
}

/** Defines tests of data that an old version wrote, on a service of this version. */
function testData(version: string, engine: Engine, openDatabase: () => Promise<string>): void {
  let kept: KeptAnswers;
  let service: Awaited<ReturnType<typeof serveHere>>;

  beforeAll(async () => {
    kept = await readKeptAnswers(version, engine);
    service = await serveHere({ database: await openDatabase() });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test("has all plants, exactly as they were", async () => {
    const list = await service.call("GET /plants?include=id", { token: kept.readToken });

    expect(await list.text()).toBe(kept.plants);
  });

  test("has its plants by their tag", async () => {
    const list = await service.call("GET /plants?tag=chosen", { token: kept.readToken });

    expect(await list.json()).toHaveLength(5);
  });

  test("replays a create with a key of that time", async () => {
    const response = await service.call("POST /plants", {
      token: kept.token,
      headers: { "Idempotency-Key": kept.keyed.key },
      body: kept.keyed.body,
    });

    expect(response.status).toBe(201);
    expect(response.headers.get("location")).toBe(kept.keyed.location);
    expect(response.headers.get("idempotency-replayed")).toBe("true");
  });

  /** Creates a plant and deletes it. Returns its id. */
  async function createAndDelete(): Promise<number> {
    const { token } = kept;
    const created = await service.call("POST /plants", { token, body: '{"name":"new"}' });
    expect(created.status).toBe(201);
    const location = created.headers.get("location");
    const deleted = await service.call(`DELETE ${location}`, { token });
    expect(deleted.status).toBe(204);
    return readId(location);
  }

  async function readMe() {
    return (await service.call("GET /me", { token: kept.token })).json();
  }

  test("has a higher id for a new plant than for any before", async () => {
    expect(await createAndDelete()).toBeGreaterThan(readId(kept.keyed.location));
  });

  test("goes on with the next events", async () => {
    const { lastEvent } = await readMe();

    await createAndDelete();

    expect(await readMe()).toMatchObject({ lastEvent: lastEvent + 2 });
    const events = await service.call(`GET /events?after=${lastEvent}`, { token: kept.readToken });
    expect(await events.json()).toMatchObject([
      { seq: lastEvent + 1, type: "plant.created" },
      { seq: lastEvent + 2, type: "plant.deleted" },
    ]);
  });

  test("is counted exactly", async () => {
    await createAndDelete();

    expect(await readMe()).toMatchObject({ plants: JSON.parse(kept.plants).length });
  });

  test("has a read-only token that can't write", async () => {
    const refused = await service.call("POST /plants", {
      token: kept.readToken,
      body: '{"name":"new"}',
    });

    expect(refused.status).toBe(403);
  });

  test("has an expired token that opens nothing", async () => {
    const refused = await service.call("GET /plants", { token: kept.expiredToken });

    expect(refused.status).toBe(401);
  });

  test("has a revoked token that opens nothing", async () => {
    const refused = await service.call("GET /plants", { token: kept.revokedToken });

    expect(refused.status).toBe(401);
  });
}

describe.each(readdirSync(versions))("the data of version %s on SQLite", (version) => {
  testData(version, "sqlite", async () => {
    const database = join(folder.path, `${version}.db`);
    copyFileSync(join(versions, version, "plants.db"), database);
    copyFileSync(join(versions, version, "plants.db-wal"), `${database}-wal`);
    return database;
  });
});

describe.each(readdirSync(versions))("the data of version %s on PostgreSQL", (version) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await makeDatabase();
    await database.query(await Bun.file(join(versions, version, "postgres.sql")).text());
  });

  testData(version, "postgres", async () => database.url);

  afterAll(() => database.drop());
});

describe("a backup of 2.0, which is compressed,", () => {
  const compressed = join(versions, "2.0.0/plants.backup");
  const database = join(folder.path, "restored.db");
  const restore = (backup: string) => runInProcess(["restore", backup, "--database", database]);

  test("is refused, and the message shows how to unpack it", async () => {
    const { exitCode, errors } = await restore(compressed);

    expect(exitCode).toBe(1);
    expect(errors).toContain(": gunzip < ");
  });

  describe("can be restored once it is unpacked, and", () => {
    testData("2.0.0", "sqlite", async () => {
      const unpacked = join(folder.path, "unpacked.db");
      await Bun.write(unpacked, Bun.gunzipSync(await Bun.file(compressed).bytes()));
      const { exitCode, errors } = await restore(unpacked);
      expect(errors).toBe("");
      expect(exitCode).toBe(0);
      return database;
    });
  });
});
