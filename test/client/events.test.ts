/** The client follows events while the service is killed, restored and refuses it: both engines. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { PlantStore, PlantStoreProblem } from "../../client/plant-store.ts";
import { makePlace, type Place } from "../../proofs/audited-store.ts";
import { RestartingService } from "../../proofs/restarting-service.ts";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { engines } from "../contract/garden.ts";
import { runProgram, waitFor } from "../end-to-end/running-service.ts";
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
    let hasWritten = false;
    const killing = async () => {
      while (!hasWritten) {
        await Bun.sleep(500 + Math.random() * 1_000);
        await service.kill();
        await service.start();
      }
    };
    const writing = async () => {
      for (const number of range(1, 40)) {
        await writer.create({ name: `Plant ${number}` });
        await Bun.sleep(Math.random() * 100);
      }
      hasWritten = true;
    };
    await Promise.all([killing(), writing()]);
    expect(seqsOf(await taking)).toEqual(range(2, 41));
  });

  test("gets a problem when its token is revoked", async () => {
    const { follower, tokenId } = await openGarden("bea");
    const following = failure(collect(follower.events()), PlantStoreProblem);
    await Bun.sleep(1_000);
    const storage = await openStorage(place.database, { isServing: false });
    await storage.revokeToken(tokenId, Date.now());
    await storage.close();
    expect((await following).code).toBe("unauthenticated");
  });

  test("has to start again after a restored backup that lacks events it has seen", async () => {
    const { writer, follower } = await openGarden("cas");
    await writer.create({ name: "Moss" });
    const backup = join(place.folder, "plants.backup");
    const backed = await runProgram(["backup", backup, "--database", place.database]);
    expect(backed.exitCode).toBe(0);
    await writer.create({ name: "Fern" });
    const seen: number[] = [];
    const follow = async () => {
      for await (const { seq } of follower.events({ after: 0 })) seen.push(seq);
    };
    const following = failure(follow(), PlantStoreProblem);
    await waitFor(() => seen.length === 2 || undefined);
    await service.kill();
    await using restored = await openPlace();
    const { database } = restored;
    expect((await runProgram(["restore", backup, "--database", database])).exitCode).toBe(0);
    const other = new RestartingService({ database, port });
    await other.start();
    expect((await following).code).toBe("gone");
    expect((await follower.me()).lastEvent).toBe(1);
    await other.kill();
  });
});
