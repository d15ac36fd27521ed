/** Tokens and access: who gets in, what a refusal shows, and that gardens stay apart. */
import { describe, expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { engines, openWorld, runScenarios, type Scenario } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  const challenge = 'Bearer realm="plants"';
  const invalid = `${challenge}, error="invalid_token"`;

  const refusedHeaders: readonly [name: string, authorization: string, challenge: string][] = [
    ["no token", "", challenge],
    ["another scheme", "Basic cGxhbnQ6cGxhbnQ=", challenge],
    ["a scheme without a token", "Bearer", challenge],
    ["a bare token", makeToken(), challenge],
    ["an unknown token", `Bearer ${makeToken()}`, invalid],
    ["a malformed token", "Bearer plant_short", invalid],
    ["a token with spaces", `Bearer ${makeToken()} x`, invalid],
    ["two tokens", `Bearer ${makeToken()}, Bearer ${makeToken()}`, invalid],
    ["a very long token", `Bearer ${"x".repeat(8_000)}`, invalid],
  ];

  const operations = ["GET /plants", "HEAD /plants", "POST /plants", "DELETE /plants/7"];

  describe("access", () => {
    runScenarios(
      world,
      operations.flatMap((request) =>
        refusedHeaders.map(
          ([name, authorization, expected]): Scenario => ({
            name: `refuses ${request} with ${name}`,
            given: [{ id: 7n }],
            request,
            token: "none",
            headers: { Authorization: authorization },
            status: 401,
            ...(request.startsWith("HEAD") ? {} : { problem: "unauthenticated" }),
            answerHeaders: { "WWW-Authenticate": expected, "Cache-Control": "no-store" },
          }),
        ),
      ),
    );

    runScenarios(world, [
      { name: "lets a read token list", request: "GET /plants", token: "read", status: 200 },
      ...["POST /plants", "DELETE /plants/7", "DELETE /plants/seven"].map(
        (request): Scenario => ({
          name: `refuses ${request} with a read token, before it looks at anything else`,
          given: [{ id: 7n }],
          request,
          token: "read",
          status: 403,
          problem: "forbidden",
          answerHeaders: {
            "WWW-Authenticate": `${challenge}, error="insufficient_scope", scope="write"`,
          },
        }),
      ),
    ]);

    test.each(["bearer", "BEARER", "Bearer"])("takes the scheme as %s", async (scheme) => {
      const token = await world.makeToken({ user: "alice" });
      const headers = { authorization: `${scheme} ${token}` };
      expect((await world.fetch("GET /plants", { headers })).status).toBe(200);
    });

    test("shows one refusal for unknown, expired and revoked tokens", async () => {
      const expired = await world.makeToken({ user: "alice", expiresAtMs: Date.now() - 1 });
      const revoked = await world.makeToken({ user: "alice" });
      const revokedId = (await world.storage.listTokens()).at(-1)?.id ?? "";
      await world.storage.revokeToken(revokedId, Date.now());
      const answers = await Promise.all(
        [makeToken(), "garbage", expired, revoked].map(async (token) => {
          const headers = { authorization: `Bearer ${token}`, "x-request-id": "same" };
          const response = await world.fetch("GET /plants", { headers });
          return JSON.stringify([response.status, [...response.headers], await response.text()]);
        }),
      );
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toContain("401");
    });

    test("keeps gardens apart, and lets tokens share one", async () => {
      const call = async (token: string, request: string, body?: object) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        return world.fetch(request, body ? { headers, body: JSON.stringify(body) } : { headers });
      };
      const ann = await world.makeToken({ user: "ann", garden: "team" });
      const bob = await world.makeToken({ user: "bob", garden: "team" });
      const eve = await world.makeToken({ user: "eve" });
      expect((await call(ann, "POST /plants", { name: "Shared", id: 1 })).status).toBe(201);
      expect((await call(eve, "POST /plants", { name: "Own", id: 1 })).status).toBe(201);
      expect(await (await call(bob, "GET /plants")).json()).toEqual([{ name: "Shared", tag: "" }]);
      expect(await (await call(eve, "GET /plants")).json()).toEqual([{ name: "Own", tag: "" }]);
      expect((await call(eve, "DELETE /plants/1")).status).toBe(204);
      expect((await call(eve, "DELETE /plants/1")).status).toBe(404);
      expect(await (await call(bob, "GET /plants")).json()).toHaveLength(1);
    });

    test("breaks a long list off once its token is revoked", async () => {
      const token = await world.makeToken({ user: "reader", garden: "long" });
      const id = (await world.storage.listTokens()).at(-1)?.id ?? "";
      const writes = Array.from({ length: 3_000 }, () => ({
        kind: "create" as const,
        garden: "long",
        id: undefined,
        name: "Fern",
        tag: "",
        idempotency: undefined,
      }));
      await world.storage.apply(writes);
      const headers = { authorization: `Bearer ${token}` };
      const response = await world.fetch("GET /plants", { headers });
      const reader = response.body?.getReader();
      await reader?.read();
      await world.storage.revokeToken(id, Date.now());
      await world.assembly.authenticator.refresh();
      const readRest = async () => {
        while (!(await reader?.read())?.done);
      };
      expect(await readRest().catch((error) => error)).toBeInstanceOf(Error);
      const metrics = await (await world.fetch("GET /metrics")).text();
      expect(metrics).toContain("plantstore_broken_streams_total 1\n");
    });

    test("stores nothing whose body comes after its token was revoked", async () => {
      const token = await world.makeToken({ user: "slow" });
      const id = (await world.storage.listTokens()).at(-1)?.id ?? "";
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const create = () => {
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
        const answering = world.fetch("POST /plants", { headers, body: readable });
        const send = async () => {
          await new Blob(['{"name":"Fern"}']).stream().pipeTo(writable);
          return (await answering).status;
        };
        return { send };
      };
      // So that the token is known, and those behind it are admitted at once.
      expect(await create().send()).toBe(201);
      const [unchanged, forgotten, late] = [create(), create(), create()];
      expect(await unchanged.send()).toBe(201);
      await world.makeToken({ user: "another" });
      await world.assembly.authenticator.refresh();
      expect(await forgotten.send()).toBe(201);
      await world.storage.revokeToken(id, Date.now());
      await world.assembly.authenticator.refresh();
      expect(await late.send()).toBe(401);
      expect(await world.storage.list("slow", undefined, 10)).toHaveLength(3);
    });

    test("does not read a token from the query or the body", async () => {
      const token = await world.makeToken({ user: "alice" });
      expect((await world.fetch(`GET /plants?access_token=${token}`)).status).toBe(401);
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const body = `access_token=${token}`;
      expect((await world.fetch("POST /plants", { headers, body })).status).toBe(401);
    });
  });
});
