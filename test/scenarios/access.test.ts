/** Access: tokens that expire, are revoked, or open the same garden. */
import { describe, expect, test } from "bun:test";
import { engines, openWorld } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  describe("access", () => {
    test("lets tokens to one garden share its plants", async () => {
      const ann = await world.makeToken({ user: "ann", garden: "team" });
      const bob = await world.makeToken({ user: "bob", garden: "team" });
      const call = (token: string, request: string, init: RequestInit = {}) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        return world.fetch(request, { ...init, headers });
      };
      const body = '{"name":"Shared","id":1}';
      expect((await call(ann, "POST /plants", { body })).status).toBe(201);
      expect(await (await call(bob, "GET /plants")).json()).toEqual([{ name: "Shared", tag: "" }]);
      expect((await call(bob, "DELETE /plants/1")).status).toBe(204);
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
      // Not an error of the service.
      const metrics = await (await world.fetch("GET /metrics")).text();
      expect(metrics).toContain("plantstore_broken_streams_total 0\n");
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
  });
});
