/** The client follows events while the service is killed, restored and refuses it: both engines. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { PlantStore, PlantStoreProblem } from "../../client/plant-store.ts";
import { makePlace, type Place } from "../../proofs/audited-store.ts";
import { RestartingService } from "../../proofs/deployment.ts";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { runInProcess } from "../command.ts";
import { engines } from "../contract/garden.ts";
import { makeCaller, readMetric, waitFor } from "../end-to-end/running-service.ts";
import { runStatement } from "../postgres-server.ts";
import { pickPorts } from "../processes.ts";
import { collect, failure } from "./client-case.ts";
import { range, seqsOf, take } from "./event-cases.ts";

setDefaultTimeout(120_000);

describe.each(engines)("a client of a service on %s", (engine) => {
  const [port = 0] = pickPorts(1);
  const openPlace = () => makePlace(engine === "SQLite" ? "sqlite" : "postgres");
  let place: Place;
  let service: RestartingService;

  beforeAll(async () => {
    place = await openPlace();
    service = new RestartingService({ database: place.database, port });
    await service.start();
  });
  afterAll(async () => {
    await service.kill();
    await place[Symbol.asyncDispose]();
  });

  async function openGarden(user: string) {
    const storage = await openStorage(place.database, { isServing: false });
    const { token, record } = await issueToken(storage, { user }, Date.now());
    await storage.close();
    const open = (retries: number) =>
      new PlantStore({ url: `http://127.0.0.1:${port}`, token, retries });
    return { writer: open(100), follower: open(0), tokenId: record.id };
  }

  test("sees each event once and in order, although the service is killed repeatedly", async () => {
    const { writer, follower } = await openGarden("ann");
    const [first] = await Promise.all([
      take(follower.events({ after: 0 }), 1),
      writer.create({ name: "Moss" }),
    ]);
    expect(seqsOf(first)).toEqual([1]);
    const taking = take(follower.events({ after: 1 }), 40);
    for (const number of range(1, 40)) {
      const creating = writer.create({ name: `Plant ${number}` });
      if (number % 15 === 0) {
        await service.kill();
        await service.start();
      }
      await creating;
    }
    expect(seqsOf(await taking)).toEqual(range(2, 41));
  });

  test("gets a problem when its token is revoked", async () => {
    const { follower, tokenId } = await openGarden("bea");
    const following = failure(collect(follower.events()), PlantStoreProblem);
    const call = makeCaller(`http://127.0.0.1:${port}`);
    await waitFor(async () => (await readMetric({ call }, "listeners")) === 1 || undefined);
    const storage = await openStorage(place.database, { isServing: false });
    await storage.revokeToken(tokenId, Date.now());
    await storage.close();
    expect((await following).code).toBe("unauthenticated");
  });

  /** Starts on what a backup has, once `meanwhile` has happened to the store. */
  async function restoreBackup(meanwhile: () => Promise<void>): Promise<void> {
    if (engine === "SQLite") {
      const backup = join(place.folder, "backup.db");
      const run = (command: string) =>
        runInProcess([command, backup, "--database", place.database]);
      expect((await run("backup")).exitCode).toBe(0);
      await meanwhile();
      await service.kill();
      expect((await run("restore")).exitCode).toBe(0);
      return service.start();
    }
    // As pg_dump, pg_restore and the statement of docs/postgresql.md do it.
    const tables = ["gardens", "plants", "events", "idempotency_keys"];
    const copy = (from: string, to: string) =>
      tables.map((table) => `CREATE TABLE ${to}${table} AS TABLE ${from}${table};`).join("");
    const page = await Bun.file(join(import.meta.dir, "../../docs/postgresql.md")).text();
    const raise = /^WITH .+\n.*UPDATE gardens SET last_event = .+;$/m.exec(page)?.[0] ?? "";
    await runStatement(place.database, copy("", "kept_"));
    await meanwhile();
    await service.kill();
    const refill = (table: string) =>
      `DELETE FROM ${table}; INSERT INTO ${table} TABLE kept_${table}; DROP TABLE kept_${table};`;
    await runStatement(place.database, tables.map(refill).join("") + raise);
    return service.start();
  }

  test("has to start again after a restored backup, and then goes on", async () => {
    const { writer, follower } = await openGarden("cas");
    await writer.create({ name: "Moss" });
    const seen: number[] = [];
    const follow = async () => {
      for await (const { seq } of follower.events({ after: 0 })) seen.push(seq);
    };
    const following = failure(follow(), PlantStoreProblem);
    await restoreBackup(async () => {
      await writer.create({ name: "Fern" });
      await waitFor(() => seen.length === 2 || undefined);
    });
    expect((await following).code).toBe("gone");
    // However far they got, and even if as many events have happened since.
    await writer.create({ name: "Rose" });
    for (const after of [0, 1, 2, 1_000_000]) {
      const stale = await failure(take(follower.events({ after }), 1), PlantStoreProblem);
      expect(stale.code).toBe("gone");
    }
    expect((await follower.me()).lastEvent).toBe(1_000_002);
    expect(seqsOf((await follower.eventPage()).events)).toEqual([1_000_002]);
    expect(seqsOf(await take(follower.events({ after: 1_000_001 }), 1))).toEqual([1_000_002]);
  });
});
