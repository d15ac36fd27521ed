/**
 * Imports that the service ends, in ways that the real one can't be made to. The others are in
 * test/end-to-end/: commands.test.ts and stopped-commands.test.ts.
 */
import { expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { describeImport, Importer, makeImportKey } from "./importer.ts";
import { Stop } from "./stop.ts";

interface SentRow {
  readonly name: string;
  readonly id?: number;
}

/** Imports into a service that has no plants to show, unless `show` says otherwise. */
async function importAll(
  rows: readonly SentRow[],
  store: (rows: readonly SentRow[], key: string | null) => Response,
  show: (url: string) => Response = () => Response.json([]),
) {
  const fetch = async (url: string, { method, headers, body }: RequestInit) => {
    if (method !== "POST") return show(url);
    return store(JSON.parse(String(body)), new Headers(headers).get("idempotency-key"));
  };
  const client = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const valid = rows.map((draft, index) => ({ line: index + 2, draft }));
  const options = { key: makeImportKey(valid), stop: new Stop() };
  const importer = new Importer(client, options);
  const error = await importer.send(valid).catch((reason: Error) => reason.message);
  return { error, importer };
}

function problem(status: number, code: string): Response {
  const type = `urn:plantstore:problem:${code}`;
  const headers = { "content-type": "application/problem+json" };
  return Response.json({ type, detail: "As it says." }, { status, headers });
}

const toRows = (...names: readonly string[]) => names.map((name) => ({ name }));
const plants = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ name: `Fern ${at}` }));
const diskIsFull = "The service's disk is full. Make room there.";

test("a full garden ends the import, after every result of its request was counted", async () => {
  const full = { status: 507, code: "storage-full", detail: "The garden is full." };
  const idless = { status: 409, code: "conflict", detail: "No id is left to assign." };
  const { error, importer } = await importAll(toRows("Fern", "Moss", "Ivy", "Rose"), () =>
    Response.json([full, { status: 201, id: 1 }, full, idless]),
  );
  expect(error).toBe("The garden is full.");
  const refused = [{ line: 5, error: "No id is left to assign." }];
  expect(importer).toMatchObject({ stored: 1, storedMax: 1, refused, isDone: false });
});

test("a full disk ends it, and if nothing was stored, it says so", async () => {
  const { error, importer } = await importAll(toRows("Fern"), () => problem(507, "storage-full"));
  expect(error).toBe(diskIsFull);
  expect(importer).toMatchObject({ stored: 0, storedMax: 0 });
});

test.each([1, 37, 499])("a full disk that let %d of 500 rows through added these", async (room) => {
  let isFirst = true;
  const { error, importer } = await importAll(
    plants(500),
    (rows) => {
      // Part of them may be stored. The client sends them again.
      if (isFirst) {
        isFirst = false;
        return problem(503, "unavailable");
      }
      if (rows.length > room) return problem(507, "storage-full");
      return Response.json(rows.map((_, at) => ({ status: 201, id: at + 1, replayed: true })));
    },
    (url) =>
      Response.json(
        url.includes("order=desc")
          ? []
          : plants(room).map((each, at) => ({ id: at + 1, tag: "", ...each })),
      ),
  );
  expect(error).toBe(diskIsFull);
  expect(importer).toMatchObject({ stored: room, storedMax: room, alreadyThere: 0 });
});

test("rows that couldn't be compared any more are counted as that, and as perhaps added if they may be", async () => {
  const rows = [
    { name: "Rose", id: 7 },
    { name: "Tulip", id: 8 },
    ...toRows("Fern", "Moss", "Ivy"),
  ];
  const conflict = { status: 409, code: "conflict", detail: "It is taken." };
  let reads = 0;
  const { importer } = await importAll(
    rows,
    ([first]) =>
      first?.id === undefined
        ? Response.json([4, 11, 12].map((id) => ({ status: 201, id, replayed: true })))
        : Response.json([conflict, { status: 201, id: 8 }]),
    // Looked at: the plant with the id 7, and the last plant before the import. Then no more.
    () => {
      const plant = [[{ id: 7, name: "Rose", tag: "" }], [{ id: 10, name: "Oak", tag: "" }]][
        reads++
      ];
      return plant ? Response.json(plant) : problem(401, "unauthenticated");
    },
  );
  expect(importer).toMatchObject({ stored: 1, storedMax: 3, alreadyThere: 1, notCompared: 1 });
  expect(describeImport(importer, 1_000)).toBe(
    "Added at least 1, at most 3 plants in 1.0 s. The outcome of the last request is unknown. " +
      "1 was already there. 1 row was not compared with what is there.",
  );
});

test("what became of the last request can be found out later, by sending it once more", async () => {
  let respond = (_rows: readonly SentRow[]) => problem(503, "unavailable");
  const { importer } = await importAll(
    toRows("Fern", "Moss"),
    (rows) => respond(rows),
    (url) => Response.json(url.includes("order=desc") ? [] : [{ id: 1, name: "Fern", tag: "" }]),
  );
  expect(importer).toMatchObject({ stored: 0, storedMax: 2 });
  respond = () => problem(401, "unauthenticated");
  const refused = await importer.settle().catch((error: Error) => error.message);
  expect(refused).toBe("As it says.");
  // It says nothing about the request before.
  expect(importer).toMatchObject({ stored: 0, storedMax: 2 });
  respond = (rows) =>
    Response.json(rows.map((_, at) => ({ status: 201, id: at + 1, replayed: at === 0 })));
  await importer.settle();
  expect(importer).toMatchObject({ stored: 2, storedMax: 2, alreadyThere: 0 });
});

test("a file goes in the same bulks, under the same keys, as it did in 3.0", async () => {
  const names = Array.from({ length: 2_000 }, (_, index) => `${index}`.padEnd(200, "x"));
  const sent: unknown[] = [];
  await importAll(toRows(...names), (rows, key) => {
    sent.push([key, rows.length]);
    return Response.json(rows.map((_, id) => ({ status: 201, id })));
  });
  // Otherwise a file that was imported before an upgrade would be stored again: see wire-text.ts.
  expect(sent).toEqual([
    ["import-ae1a2f6b4eb8827b.0", 1_231],
    ["import-ae1a2f6b4eb8827b.1231", 769],
  ]);
});
