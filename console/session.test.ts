/** Who is signed in, and what is kept of a token. */
import { expect, test } from "bun:test";
import { makeToken } from "../src/auth/opaque-token.ts";
import { openState, until, url } from "../test/open-state.ts";
import { Session } from "./session.ts";

const { service, fetch, makeGarden } = openState();

function makeStorage() {
  const items = new Map<string, string>();
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  };
}

test("a session asks for a token, says what is wrong, and keeps one only if asked to", async () => {
  const storage = makeStorage();
  const session = new Session({ url, fetch }, storage);
  const me = session.api.me();
  for (const [text, error] of [
    ["", "Paste a token first."],
    ["plant_x", "This is not a whole token. Copy all of it again."],
    [`plant_${"x".repeat(49)}`, "This has a typo: its checksum doesn't match. Copy it again."],
    [
      makeToken("greenhouse"),
      "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.",
    ],
  ] as const) {
    await session.signIn(text, true);
    expect([session.error.value, session.isSignedIn.value]).toEqual([error, false]);
  }
  expect(storage.items).toBeEmpty();
  const token = await makeGarden(["Fern"], { user: "alice" });
  await session.signIn(` Bearer ${token}`, true);
  expect((await me).user).toBe("alice");
  expect([session.isSignedIn.value, session.error.value]).toEqual([true, ""]);
  const next = new Session({ url, fetch }, storage);
  expect((await next.api.me()).user).toBe("alice");
  next.signOut();
  const last = new Session({ url, fetch }, storage);
  expect(last.isSignedIn.value).toBe(false);
  void last.api.me();
  await last.signIn(`export PLANTSTORE_TOKEN="${token}"`, false);
  await until(() => last.isSignedIn.value);
  expect(storage.items).toBeEmpty();
});

test("a session names a token for password managers, by its user and its garden", async () => {
  const session = new Session({ url, fetch }, undefined);
  void session.api.me();
  await session.signIn(await makeGarden([], { user: "ada", garden: "rooftop" }), false);
  expect(session.account.value).toBe("ada in rooftop");
});

test("a session says that a proxy wants people to sign in", async () => {
  const session = new Session({ url, fetch: async () => new Response("<html>") }, undefined);
  await session.signIn("somebody", false);
  expect(session.error.value).toContain("Something other than the service responded");
});

test("after a revocation, any token to the same garden goes on with what was begun", async () => {
  const first = await makeGarden(["Fern"], { user: "alice", garden: "shared" });
  const second = await makeGarden([], { user: "bob", garden: "shared" });
  const other = await makeGarden([]);
  const session = new Session({ url, fetch }, undefined);
  const me = session.api.me();
  await session.signIn(first, false);
  await me;
  await service.revoke(first);
  const creating = session.api.create({ name: "Moss" });
  const importing = session.api.patient.createMany([{ name: "Ivy" }]);
  await until(() => !session.isSignedIn.value);
  expect(session.reason.value).toContain("expired or was revoked");
  await session.signIn(other, false);
  expect(session.error.value).toContain("another garden");
  await session.signIn(second, false);
  expect((await creating).name).toBe("Moss");
  expect(await importing).toMatchObject([{ status: 201 }]);
  expect((await session.api.me()).user).toBe("bob");
});
