/** Who is signed in, and what is kept of a token. */
import { expect, test } from "bun:test";
import { makeToken } from "../src/auth/opaque-token.ts";
import { openState, until, url } from "../test/open-state.ts";
import { Session } from "./session.ts";

const { service, fetch, makeGarden } = openState();

/** Takes the place of the tab's session storage. */
function makeStorage() {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
}

test.each<{ text: string; error: string }>([
  { text: "", error: "Paste a token first." },
  { text: "plant_x", error: "This is not a whole token. Copy all of it again." },
  {
    text: `plant_${"x".repeat(49)}`,
    error: "This has a typo: its checksum doesn't match. Copy it again.",
  },
  {
    text: makeToken("greenhouse"),
    error: "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.",
  },
])("a session refuses $text, says why, and keeps nothing of it", async ({ text, error }) => {
  const storage = makeStorage();
  const session = new Session({ url, fetch }, storage);
  void session.api.me();

  await session.signIn(text, true);

  expect(session.error.value).toBe(error);
  expect(session.isSignedIn.value).toBe(false);
  expect(storage.items).toBeEmpty();
});

test("a request that waits for a token is sent after signing in", async () => {
  const session = new Session({ url, fetch }, undefined);
  const me = session.api.me();
  await session.signIn("plant_x", false);

  await session.signIn(await makeGarden([], { user: "alice" }), false);

  expect((await me).user).toBe("alice");
  expect(session.isSignedIn.value).toBe(true);
  expect(session.error.value).toBe("");
});

test("a token that is to be kept signs in the next page, until signing out", async () => {
  const storage = makeStorage();
  const token = await makeGarden([], { user: "alice" });
  const session = new Session({ url, fetch }, storage);
  const me = session.api.me();
  await session.signIn(token, true);
  await me;

  const next = new Session({ url, fetch }, storage);
  expect((await next.api.me()).user).toBe("alice");
  next.signOut();

  const last = new Session({ url, fetch }, storage);
  expect(last.isSignedIn.value).toBe(false);
  expect(storage.items).toBeEmpty();
});

test("a token isn't kept unless the user asks for it", async () => {
  const storage = makeStorage();
  const session = new Session({ url, fetch }, storage);
  void session.api.me();

  await session.signIn(await makeGarden([]), false);

  await until(() => session.isSignedIn.value);
  expect(storage.items).toBeEmpty();
});

test("a token can be pasted as a header or as a shell's command", async () => {
  const token = await makeGarden([]);
  for (const pasted of [` Bearer ${token}`, `export PLANTSTORE_TOKEN="${token}"`]) {
    const session = new Session({ url, fetch }, undefined);
    void session.api.me();

    await session.signIn(pasted, false);

    await until(() => session.isSignedIn.value);
    expect(session.error.value).toBe("");
  }
});

test("a password manager gets the user and the garden as the token's name", async () => {
  const session = new Session({ url, fetch }, undefined);
  void session.api.me();

  await session.signIn(await makeGarden([], { user: "ada", garden: "rooftop" }), false);

  expect(session.account.value).toBe("ada in rooftop");
});

test("a session says if something other than the service responds, such as a proxy", async () => {
  const session = new Session({ url, fetch: async () => new Response("<html>") }, undefined);

  await session.signIn("somebody", false);

  expect(session.error.value).toContain("Something other than the service responded");
});

test("after a revocation, any token to the same garden goes on with what was begun", async () => {
  const alice = await makeGarden([{ name: "Fern" }], { user: "alice", garden: "shared" });
  const bob = await makeGarden([], { user: "bob", garden: "shared" });
  const session = new Session({ url, fetch }, undefined);
  const me = session.api.me();
  await session.signIn(alice, false);
  await me;

  await service.revoke(alice);
  const creating = session.api.create({ name: "Moss" });
  const importing = session.api.patient.createMany([{ name: "Ivy" }]);
  await until(() => !session.isSignedIn.value);
  expect(session.reason.value).toContain("expired or was revoked");

  await session.signIn(await makeGarden([]), false);
  expect(session.error.value).toContain("another garden");

  await session.signIn(bob, false);
  expect((await creating).name).toBe("Moss");
  expect(await importing).toMatchObject([{ status: 201 }]);
  expect((await session.api.me()).user).toBe("bob");
});
