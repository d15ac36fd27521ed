/** Tokens that are revoked under way, and JWTs where nobody asked for them. */
import { describe, expect, test } from "bun:test";
import { makeSigningKey, sign } from "../openid-issuer.ts";
import { engines, openWorld } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);

  test("nothing is stored whose body arrives after its token was revoked", async () => {
    const token = await world.makeToken({ user: "slow" });
    const id = (await world.storage.listTokens()).at(-1)?.id ?? "";
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const create = () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const responding = world.fetch("POST /plants", { headers, body: readable });
      return async () => {
        await new Blob(['{"name":"Fern"}']).stream().pipeTo(writable);
        return (await responding).status;
      };
    };
    // The token is looked up now, so that the next requests are admitted at once.
    expect(await create()()).toBe(201);
    const [sendUnchanged, sendForgotten, sendLate] = [create(), create(), create()];
    expect(await sendUnchanged()).toBe(201);
    await world.makeToken({ user: "another" });
    await world.assembly.authenticator.refresh();
    expect(await sendForgotten()).toBe(201);
    await world.storage.revokeToken(id, Date.now());
    await world.assembly.authenticator.refresh();
    expect(await sendLate()).toBe(401);
    expect(await world.storage.list("slow", undefined, 10)).toHaveLength(3);
  });

  test("no JWT opens anything where no issuer is configured", async () => {
    const exp = Math.floor(Date.now() / 1_000) + 60;
    const jwt = await sign(await makeSigningKey(), { sub: "alice", scope: "write", exp });
    expect((await world.call(jwt, "GET /plants")).status).toBe(401);
  });
});
