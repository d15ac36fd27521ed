/** Two instances on one PostgreSQL database. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { EventStreamReader } from "../event-reader.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { makeToken, serveHere, waitFor } from "./running-service.ts";

type Service = Awaited<ReturnType<typeof serveHere>>;

describe("two instances on one database", () => {
  let database: TestDatabase;
  let first: Service;
  let second: Service;

  beforeAll(async () => {
    database = await makeDatabase();
    first = await serveHere({ database: database.url });
    // The password may be in PGPASSWORD instead of the URL.
    const { password } = new URL(database.url);
    process.env.PGPASSWORD = password;
    second = await serveHere({ database: database.url.replace(`:${password}`, "") });
  });
  afterAll(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    delete process.env.PGPASSWORD;
    await database.drop();
  });

  test("share plants, keys and tokens", async () => {
    const { token } = first;
    const plant = { method: "POST", body: '{"name":"Fern"}', headers: { "Idempotency-Key": "k" } };
    const created = await first.call("POST /plants", plant);
    const again = await second.call("POST /plants", { ...plant, token });
    expect([created.status, again.status]).toEqual([201, 201]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await (await second.call("GET /plants", { token })).json()).toHaveLength(1);
  });

  test("send a listener what is written through the other one", async () => {
    const { token } = first;
    const headers = { accept: "text/event-stream" };
    const reader = new EventStreamReader(await second.call("GET /events", { token, headers }));
    const created = await first.call("POST /plants", { body: '{"name":"Moss"}' });
    const id = Number(created.headers.get("location")?.split("/").at(-1));
    expect(await reader.next()).toMatchObject({ data: { plant: { id, name: "Moss" } } });
    await reader.close();
  });

  test("refuse a garden that another program has locked, and hold up no other garden's writes", async () => {
    const other = await makeToken({ database: database.url }, "other");
    const write = async (token = first.token) =>
      (await first.call("POST /plants", { body: '{"name":"Fern"}', token })).status;
    const intruder = new Client(database.url);
    await intruder.connect();
    await intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'gardener' FOR UPDATE");
    const held = Array.from({ length: 20 }, () => write());
    // While the lock is there.
    for (let count = 0; count < 5; count++) expect(await insistOn201(() => write(other))).toBe(201);
    expect(new Set(await Promise.all(held))).toEqual(new Set([503]));
    // Only that garden is out of order, not the instance.
    expect((await first.call("GET /readyz")).status).toBe(200);
    await intruder.end();
    expect(await insistOn201(write)).toBe(201);
  });
});

/** A busy machine may refuse it for another reason. */
const insistOn201 = (write: () => Promise<number>) =>
  waitFor(async () => ((await write()) === 201 ? 201 : undefined));
