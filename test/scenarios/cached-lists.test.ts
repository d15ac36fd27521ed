/** Lists that are kept: whoever asks for one gets their own, and is checked as for any other. */
import { describe, expect, test } from "bun:test";
import { openWorld, type World } from "./scenario.ts";

const world = openWorld("SQLite");

async function plant(
  garden: string,
  names: readonly string[],
  { storage, makeToken }: World = world,
): Promise<Record<string, string>> {
  const idempotency = undefined;
  await storage.apply(
    names.map((name, index) => {
      return { kind: "create", garden, id: BigInt(index), name, tag: "", idempotency };
    }),
  );
  const token = await makeToken({ user: "alice", garden, scope: "read" });
  return { Authorization: `Bearer ${token}` };
}

/** The names in a list once it is kept. */
async function listOften(target: string, headers: Record<string, string>): Promise<string[]> {
  for (let time = 0; time < 3; time++)
    await (await world.fetch(`GET ${target}`, { headers })).text();
  const plants = (await (await world.fetch(`GET ${target}`, { headers })).json()) as {
    name: string;
  }[];
  return plants.map(({ name }) => name);
}

test("no garden shows the list of another, whatever both are named", async () => {
  const home = await plant("home", ["of home", "of home, too"]);
  const alike = await plant("homelimit=1", ["of another"]);
  expect(await listOften("/plants?limit=1", home)).toEqual(["of home"]);
  expect(await listOften("/plants", alike)).toEqual(["of another"]);
  expect(await listOften("/plants", home)).toEqual(["of home", "of home, too"]);
});

test("a page shows every change to it, and the next one what was added at the end", async () => {
  const headers = await plant("changing", ["a", "b", "c"]);
  const create = (id: bigint | undefined, name: string) =>
    world.storage.apply([
      { kind: "create", garden: "changing", id, name, tag: "", idempotency: undefined },
    ]);
  const pages = async () => [
    await listOften("/plants?limit=2", headers),
    await listOften("/plants?limit=9&after=1", headers),
  ];
  expect(await pages()).toEqual([["a", "b"], ["c"]]);
  await create(undefined, "d");
  expect(await pages()).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
  await create(-1n, "before a");
  expect(await pages()).toEqual([
    ["before a", "a"],
    ["c", "d"],
  ]);
  await world.storage.apply([{ kind: "delete", garden: "changing", id: 0n }]);
  expect(await pages()).toEqual([
    ["before a", "b"],
    ["c", "d"],
  ]);
});

test("a page whose last id is above all assigned ones shows plants that are put before it", async () => {
  const headers = await plant("far", ["a"]);
  const create = (id: bigint | undefined, name: string) =>
    world.storage.apply([
      { kind: "create", garden: "far", id, name, tag: "", idempotency: undefined },
    ]);
  await create(2n ** 62n, "y");
  await create(2n ** 62n + 1n, "z");
  expect(await listOften("/plants?limit=2", headers)).toEqual(["a", "y"]);
  await create(undefined, "b");
  expect(await listOften("/plants?limit=2", headers)).toEqual(["a", "b"]);
});

test("a body is refused also where the list is kept", async () => {
  const headers = await plant("garden", ["Fern"]);
  expect(await listOften("/plants", headers)).toEqual(["Fern"]);
  const sent = { ...headers, "Content-Length": "2" };
  expect((await world.fetch("GET /plants", { headers: sent })).status).toBe(400);
});

describe("where only some origins may ask", () => {
  const origins = ["https://a.example", "https://b.example"];
  const strict = openWorld("SQLite", { corsOrigins: origins });

  test.each([
    ["a kept list", 200],
    ["a refusal", 401],
  ])("each is told that it may have %s, and no other is", async (_, status) => {
    const headers = await plant("garden", [], strict);
    if (status === 401) headers.Authorization = "Bearer wrong";
    const allowed: (string | null)[] = [];
    for (const Origin of [...origins, ...origins, "https://c.example", ...origins]) {
      const response = await strict.fetch("GET /plants", { headers: { ...headers, Origin } });
      expect(response.status).toBe(status);
      allowed.push(response.headers.get("Access-Control-Allow-Origin"));
    }
    expect(allowed).toEqual([...origins, ...origins, null, ...origins]);
  });
});
