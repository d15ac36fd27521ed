/** `plantstore garden delete` beside a running service: what the name's next owner meets. */
import { afterAll, expect, test } from "bun:test";
import { makePlace } from "../../testing/audited-store.ts";
import { EventStreamReader } from "../../testing/event-reader.ts";
import { audience, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { makeToken, revokeTokens, runProgram, serveHere } from "../../testing/running-service.ts";
import { engines } from "../contract/garden.ts";

const issuer = startIssuer();
const key = await issuer.makeKey();
afterAll(() => issuer.stop());

const stream = { Accept: "text/event-stream" };
const plantsOf = (count: number) => JSON.stringify(Array(count).fill({ name: "Fern" }));

async function openService(engine: (typeof engines)[number]) {
  const opened = new AsyncDisposableStack();
  const place = opened.use(await makePlace(engine === "SQLite" ? "sqlite" : "postgres"));
  const trust = { "jwt-issuer": issuer.url, "jwt-audience": audience };
  const service = opened.use(await serveHere({ database: place.database, ...trust }));
  return {
    ...service,
    garden: (...args: readonly string[]) =>
      runProgram(["garden", ...args], { PLANTSTORE_DATABASE: place.database }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

test.each(engines)("on %s, no list shows a plant of a garden that was deleted", async (engine) => {
  await using service = await openService(engine);
  const first = await makeToken(service, "alice");
  await service.call("POST /plants/bulk", { token: first, body: plantsOf(5) });
  // A list is cached once it was requested twice.
  for (const _ of "123") {
    const list = await service.call("GET /plants?limit=9", { token: first });
    expect(await list.json()).toHaveLength(5);
  }
  await revokeTokens(service, "alice");
  expect(await service.garden("delete", "alice", "--yes")).toEqual({
    exitCode: 0,
    out: "",
    errors: 'Deleted the garden "alice" with 5 plants.\n',
  });
  const token = await makeToken(service, "bob", "--garden", "alice");
  const list = await service.call("GET /plants?limit=9", { token });
  expect(await list.json()).toEqual([]);
  const { plants } = await (await service.call("GET /me", { token })).json();
  expect(plants).toBe(0);
});

test.each(engines)(
  "on %s, streams of a deleted garden end, and its followers have to start over",
  async (engine) => {
    await using service = await openService(engine);
    const token = await sign(key, issuer.claims(Date.now(), { exp: Date.now() / 1_000 + 600 }));
    const call = (request: string, body?: string, headers = {}) =>
      service.call(request, { token, headers, ...(body && { body }) });
    await call("POST /plants/bulk", plantsOf(5));
    const events = new EventStreamReader(await call("GET /events?after=0", undefined, stream));
    expect(await events.take(5)).toHaveLength(5);
    expect(await service.garden("delete", "alice", "--yes")).toMatchObject({ exitCode: 0 });
    // More than there were: the positions of the old garden are numbers of the new one, too.
    await call("POST /plants/bulk", plantsOf(7));
    expect(await events.next()).toBeUndefined();
    for (const after of [0, 4, 5, 6, 12]) {
      expect((await call(`GET /events?after=${after}`)).status).toBe(410);
    }
    expect((await call("GET /events", undefined, { ...stream, "Last-Event-ID": "5" })).status).toBe(
      410,
    );
    // Ids and events go on, so nothing that was kept of the old garden fits the new one.
    const list = await (await call("GET /plants?include=id")).json();
    expect(list.map(({ id }: { id: number }) => id)).toEqual([6, 7, 8, 9, 10, 11, 12]);
    expect(await (await call("GET /me")).json()).toMatchObject({ plants: 7, lastEvent: 1_000_012 });
    const log = await (await call("GET /events?after=1000005")).json();
    expect(log.map(({ seq }: { seq: number }) => seq - 1_000_000)).toEqual([
      6, 7, 8, 9, 10, 11, 12,
    ]);
  },
);

test.each(engines)(
  "on %s, garden list shows a garden that its user emptied, and not one that was deleted",
  async (engine) => {
    await using service = await openService(engine);
    const listed = async () => {
      const { out } = await service.garden("list", "--json");
      return JSON.parse(out).map(({ garden, plants }: { garden: string; plants: number }) => [
        garden,
        plants,
      ]);
    };
    for (const name of ["ada", "ben"]) {
      const token = await makeToken(service, name);
      await service.call("POST /plants", { token, body: '{"name":"Fern"}' });
      await service.call("DELETE /plants/1", { token });
      await revokeTokens(service, name);
    }
    const gardener = ["gardener", 0];
    expect(await listed()).toEqual([["ada", 0], ["ben", 0], gardener]);
    expect(await service.garden("delete", "ben", "--yes")).toMatchObject({ exitCode: 0 });
    expect(await listed()).toEqual([["ada", 0], gardener]);
    expect(await service.garden("delete", "ben", "--yes")).toMatchObject({ exitCode: 3 });
    // With the numbers that its next owner sees.
    await makeToken(service, "carol", "--garden", "ben");
    const [, ben] = JSON.parse((await service.garden("list", "--json")).out);
    expect(ben).toMatchObject({
      garden: "ben",
      plants: 0,
      lastEvent: 1_000_002,
      lastEventAt: null,
    });
  },
);
