/**
 * The data of released versions, with this version: nothing is lost, and all of it still works.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import type { KeptAnswers } from "./keep-data.ts";

type Engine = "sqlite" | "postgres";

const versions = join(import.meta.dir, "versions");
const folder = makeTemporaryFolder();
const stack = new AsyncDisposableStack();
stack.use(folder);
afterAll(() => stack.disposeAsync());

async function bring(version: string, engine: Engine): Promise<string> {
  const kept = join(versions, version);
  if (engine === "sqlite") {
    const path = join(folder.path, `${version}.db`);
    for (const suffix of ["", "-wal"])
      copyFileSync(join(kept, `plants.db${suffix}`), path + suffix);
    return path;
  }
  const database = stack.use(await makeDatabase());
  await database.query(await Bun.file(join(kept, "postgres.sql")).text());
  return database.url;
}

/** Nothing is lost, and all of it still works. */
async function checkData(version: string, engine: Engine, database: string): Promise<void> {
  const answers = await Bun.file(join(versions, version, "answers.json")).json();
  const { token, readToken, expiredToken, revokedToken, plants, keyed }: KeptAnswers =
    answers[engine];
  await using service = await serveHere({ database });
  const { lastEvent } = await (await service.call("GET /me", { token })).json();

  const listed = await service.call("GET /plants?include=id", { token: readToken });
  expect(await listed.text()).toBe(plants);
  const tagged = await service.call("GET /plants?tag=chosen", { token: readToken });
  expect(await tagged.json()).toHaveLength(5);

  const headers = { "Idempotency-Key": keyed.key };
  const again = await service.call("POST /plants", { token, headers, body: keyed.body });
  expect([again.status, again.headers.get("location")]).toEqual([201, keyed.location]);
  expect(again.headers.get("idempotency-replayed")).toBe("true");

  const body = '{"name":"new"}';
  const created = await service.call("POST /plants", { token, body });
  const location = created.headers.get("location") ?? "";
  const idOf = (path: string) => Number(path.split("/").at(-1));
  expect(idOf(location)).toBeGreaterThan(idOf(keyed.location));
  expect((await service.call(`DELETE ${location}`, { token })).status).toBe(204);
  const me = await service.call("GET /me", { token });
  expect(await me.json()).toMatchObject({
    plants: JSON.parse(plants).length,
    lastEvent: lastEvent + 2,
  });
  const events = await service.call(`GET /events?after=${lastEvent}`, { token: readToken });
  expect(await events.json()).toMatchObject([
    { seq: lastEvent + 1 },
    { seq: lastEvent + 2, type: "plant.deleted" },
  ]);

  expect((await service.call("POST /plants", { token: readToken, body })).status).toBe(403);
  for (const invalid of [expiredToken, revokedToken]) {
    expect((await service.call("GET /plants", { token: invalid })).status).toBe(401);
  }
}

describe.each(readdirSync(versions))("the data of version %s", (version) => {
  test.each<Engine>(["sqlite", "postgres"])("is all there and in use on %s", async (engine) => {
    await checkData(version, engine, await bring(version, engine));
  });
});

test("a backup of 2.0 is restored after gunzip, as the refusal says", async () => {
  const packed = join(versions, "2.0.0/plants.backup");
  const database = join(folder.path, "restored.db");
  const restore = (path: string) => runInProcess(["restore", path, "--database", database]);
  const refused = await restore(packed);
  expect(refused).toMatchObject({ exitCode: 1, errors: expect.stringContaining(": gunzip < ") });
  const backup = join(folder.path, "old.db");
  await Bun.write(backup, Bun.gunzipSync(await Bun.file(packed).bytes()));
  expect(await restore(backup)).toMatchObject({ exitCode: 0, errors: "" });
  await checkData("2.0.0", "sqlite", database);
});
