/** Tokens that are revoked under way, and JWTs where nobody asked for them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type SigningKey, sign, startIssuer } from "../openid-issuer.ts";
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
});

const issuer = startIssuer();
let key: SigningKey;
beforeAll(async () => {
  key = await issuer.makeKey();
});
afterAll(() => issuer.stop());

describe("without an issuer", () => {
  const world = openWorld("SQLite");

  test("no JWT opens anything, and no issuer is asked", async () => {
    const before = issuer.asked;
    const jwt = await sign(key, issuer.claims(Date.now(), {}));
    expect((await world.call(jwt, "GET /plants")).status).toBe(401);
    expect(issuer.asked).toBe(before);
  });
});
