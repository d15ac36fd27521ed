/** `plantstore garden delete` beside a running service: what the name's next owner meets. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makePlace, type Place } from "../../testing/audited-store.ts";
import { EventStreamReader, type SeenEvent } from "../../testing/event-reader.ts";
import { audience, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { makeToken, revokeTokens, runProgram, serveHere } from "../../testing/running-service.ts";
import { engines } from "../contract/garden.ts";

const issuer = startIssuer();
const key = await issuer.makeKey();
afterAll(() => issuer.stop());

const fern = '{"name":"Fern"}';
const fiveFerns = `[${Array(5).fill(fern)}]`;
const sevenFerns = `[${Array(7).fill(fern)}]`;

describe.each(engines)("on %s,", (engine) => {
  let place: Place;
  let service: Awaited<ReturnType<typeof serveHere>>;

  beforeAll(async () => {
    place = await makePlace(engine === "SQLite" ? "sqlite" : "postgres");
    service = await serveHere({
      database: place.database,
      "jwt-issuer": issuer.url,
      "jwt-audience": audience,
    });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
  });

  /** Runs `plantstore garden` with these words, in a process of its own. */
  const runGardenCommand = (...words: readonly string[]) =>
    runProgram(["garden", ...words], { PLANTSTORE_DATABASE: place.database });

  /** What `plantstore garden list` shows. */
  async function listGardens(): Promise<{ garden: string; plants: number }[]> {
    return JSON.parse((await runGardenCommand("list", "--json")).out);
  }

  /** Makes a garden that nobody has a token to, and whose only plant was deleted. */
  async function leaveEmptyGarden(name: string): Promise<void> {
    const token = await makeToken(service, name);
    await service.call("POST /plants", { token, body: fern });
    await service.call("DELETE /plants/1", { token });
    await revokeTokens(service, name);
  }

  describe("when a garden was deleted and given to another user,", () => {
    let deletion: Awaited<ReturnType<typeof runGardenCommand>>;
    let token: string;

    beforeAll(async () => {
      const formerToken = await makeToken(service, "alice");
      await service.call("POST /plants/bulk", { token: formerToken, body: fiveFerns });
      // A list is cached once it was requested twice.
      for (let count = 0; count < 3; count++) {
        const list = await service.call("GET /plants?limit=9", { token: formerToken });
        expect(await list.json()).toHaveLength(5);
      }
      await revokeTokens(service, "alice");
      deletion = await runGardenCommand("delete", "alice", "--yes");
      token = await makeToken(service, "bob", "--garden", "alice");
    });

    test("the command said how many plants it deleted", () => {
      expect(deletion).toEqual({
        exitCode: 0,
        out: "",
        errors: 'Deleted the garden "alice" with 5 plants.\n',
      });
    });

    test("a list that was cached shows no plant of it", async () => {
      const list = await service.call("GET /plants?limit=9", { token });

      expect(await list.json()).toEqual([]);
    });

    test("/me counts no plants", async () => {
      const me = await service.call("GET /me", { token });

      expect(await me.json()).toMatchObject({ plants: 0 });
    });
  });

  describe("when a garden was deleted and its user, who has a JWT, goes on,", () => {
    let token: string;
    let afterDeletion: SeenEvent | undefined;

    beforeAll(async () => {
      const claims = { sub: "julia", exp: Date.now() / 1_000 + 600 };
      token = await sign(key, issuer.claims(Date.now(), claims));
      await service.call("POST /plants/bulk", { token, body: fiveFerns });
      const accept = { Accept: "text/event-stream" };
      const response = await service.call("GET /events?after=0", { token, headers: accept });
      const stream = new EventStreamReader(response);
      expect(await stream.take(5)).toHaveLength(5);

      const { exitCode } = await runGardenCommand("delete", "julia", "--yes");
      expect(exitCode).toBe(0);
      // More than there were, so the old positions would be positions in the new garden, too.
      await service.call("POST /plants/bulk", { token, body: sevenFerns });
      afterDeletion = await stream.next();
    });

    test("a stream of its events has ended", () => {
      expect(afterDeletion).toBeUndefined();
    });

    test.each([0, 4, 5, 6, 12])("events after the position %i are gone", async (position) => {
      const events = await service.call(`GET /events?after=${position}`, { token });

      expect(events.status).toBe(410);
    });

    test("a stream can't resume at an old position", async () => {
      const stream = await service.call("GET /events", {
        token,
        headers: { Accept: "text/event-stream", "Last-Event-ID": "5" },
      });

      expect(stream.status).toBe(410);
    });

    test("new plants have new ids", async () => {
      const list = await service.call("GET /plants?include=id", { token });

      const ids = (await list.json()).map(({ id }: { id: number }) => id);
      expect(ids).toEqual([6, 7, 8, 9, 10, 11, 12]);
    });

    test("new events skip a million numbers", async () => {
      const me = await service.call("GET /me", { token });
      expect(await me.json()).toMatchObject({ plants: 7, lastEvent: 1_000_012 });

      const events = await service.call("GET /events?after=1000005", { token });
      const numbers = (await events.json()).map(({ seq }: { seq: number }) => seq);
      expect(numbers).toEqual([
        1_000_006, 1_000_007, 1_000_008, 1_000_009, 1_000_010, 1_000_011, 1_000_012,
      ]);
    });
  });

  test("garden list shows gardens by name, even those that are empty or unused", async () => {
    await leaveEmptyGarden("ada");
    await leaveEmptyGarden("ben");

    const gardens = await listGardens();

    const names = gardens.map(({ garden }) => garden);
    expect(names).toEqual(names.toSorted());
    expect(gardens).toContainEqual(expect.objectContaining({ garden: "ada", plants: 0 }));
    expect(gardens).toContainEqual(expect.objectContaining({ garden: "ben", plants: 0 }));
    // The service made a token to this one.
    expect(gardens).toContainEqual(expect.objectContaining({ garden: "gardener", plants: 0 }));
  });

  test("garden list doesn't show a garden that was deleted", async () => {
    await leaveEmptyGarden("carl");
    await leaveEmptyGarden("cora");

    expect(await runGardenCommand("delete", "carl", "--yes")).toMatchObject({ exitCode: 0 });

    const names = (await listGardens()).map(({ garden }) => garden);
    expect(names).not.toContain("carl");
    expect(names).toContain("cora");
  });

  test("a garden can be deleted only once", async () => {
    await leaveEmptyGarden("dan");

    expect(await runGardenCommand("delete", "dan", "--yes")).toMatchObject({ exitCode: 0 });
    expect(await runGardenCommand("delete", "dan", "--yes")).toMatchObject({ exitCode: 3 });
  });

  test("garden list shows the numbers that a deleted garden's next owner sees", async () => {
    await leaveEmptyGarden("emil");
    await runGardenCommand("delete", "emil", "--yes");

    const token = await makeToken(service, "fay", "--garden", "emil");

    const numbers = { garden: "emil", plants: 0, lastEvent: 1_000_002 };
    const listed = (await listGardens()).find(({ garden }) => garden === "emil");
    expect(listed).toMatchObject({ ...numbers, lastEventAt: null });
    const me = await service.call("GET /me", { token });
    expect(await me.json()).toMatchObject(numbers);
  });
});
