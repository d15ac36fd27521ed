/** An import that the service ends or refuses. The rest is in test/end-to-end/commands.test.ts. */
import { expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { Importer, makeImportKey } from "./importer.ts";

function importThree(response: Response) {
  return importAll(["Fern", "Moss", "Ivy"], async () => response);
}

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
  const response = Response.json([full, { status: 201, id: 1 }, full]);
  const { error, importer } = await importThree(response);
  expect(error).toBe("The garden is full.");
  expect(importer).toMatchObject({ stored: 1, refused: [], isDone: false });
});

test("a full disk ends it, too", async () => {
  const type = "urn:plantstore:problem:storage-full";
  const headers = { "content-type": "application/problem+json" };
  const problem = Response.json({ type, detail: "Nothing was changed." }, { status: 507, headers });
  expect((await importThree(problem)).error).toBe("The service's disk is full. Make room there.");
});

test("a row that the service refuses is listed with its reason", async () => {
  const detail = "No id is left to assign. Send one with the plant.";
  const refused = { status: 409, code: "conflict", detail };
  const created = { status: 201, id: 1 };
  const { importer } = await importThree(Response.json([created, refused, created]));
  expect(importer.refused).toEqual([{ line: 3, error: detail }]);
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
