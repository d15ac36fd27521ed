/** An import that the service ends or refuses. The rest is in test/end-to-end/commands.test.ts. */
import { expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { Importer, makeImportKey } from "./importer.ts";

async function importAll(
  names: readonly string[],
  fetch: (url: string, init: RequestInit) => Promise<Response>,
) {
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const rows = names.map((name, index) => ({ line: index + 2, draft: { name } }));
  const { signal } = new AbortController();
  const importer = new Importer(store, { key: makeImportKey(rows), signal });
  const error = await importer.send(rows).catch((reason: Error) => reason.message);
  return { error, importer };
}

test("a full garden ends the import, after every result of its request was counted", async () => {
  const full = { status: 507, code: "storage-full", detail: "The garden is full." };
  const idless = { status: 409, code: "conflict", detail: "No id is left to assign." };
  const { error, importer } = await importAll(["Fern", "Moss", "Ivy", "Rose"], async () =>
    Response.json([full, { status: 201, id: 1 }, full, idless]),
  );
  expect(error).toBe("The garden is full.");
  const refused = [{ line: 5, error: "No id is left to assign." }];
  expect(importer).toMatchObject({ stored: 1, refused, isDone: false });
});

test("a full disk ends it, too", async () => {
  const type = "urn:plantstore:problem:storage-full";
  const headers = { "content-type": "application/problem+json" };
  const problem = Response.json({ type, detail: "Nothing was changed." }, { status: 507, headers });
  const { error } = await importAll(["Fern"], async () => problem);
  expect(error).toBe("The service's disk is full. Make room there.");
});

test("rows whose first response was lost were added by this import, not by an earlier one", async () => {
  let requests = 0;
  const { importer } = await importAll(Array(2_000).fill("x".repeat(200)), async (_, { body }) => {
    const replayed = ++requests === 2;
    const rows: unknown[] = JSON.parse(String(body));
    return Response.json(rows.map((_, id) => ({ status: 201, id, ...(replayed && { replayed }) })));
  });
  expect([requests, importer.stored, importer.alreadyThere]).toEqual([2, 2_000, 0]);
});

test("a file goes in the same bulks, under the same keys, as it did in 3.0", async () => {
  const names = Array.from({ length: 2_000 }, (_, index) => `${index}`.padEnd(200, "x"));
  const sent: unknown[] = [];
  await importAll(names, async (_, { headers, body }) => {
    const rows: unknown[] = JSON.parse(String(body));
    sent.push([new Headers(headers).get("idempotency-key"), rows.length]);
    return Response.json(rows.map((_, id) => ({ status: 201, id })));
  });
  // Otherwise a file that was imported before an upgrade would be stored again: see wire-text.ts.
  expect(sent).toEqual([
    ["import-ae1a2f6b4eb8827b.0", 1_231],
    ["import-ae1a2f6b4eb8827b.1231", 769],
  ]);
});
