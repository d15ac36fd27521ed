/**
 * Imports that the service ends, in ways that the real one can't be made to. The others are in
 * test/end-to-end/: commands.test.ts and stopped-commands.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { describeImport, Importer, makeImportKey } from "./importer.ts";
import { Stop } from "./stop.ts";

interface SentRow {
  readonly name: string;
  readonly id?: number;
}

interface ServiceScript {
  /** Responds to a bulk of rows. */
  readonly store: (rows: readonly SentRow[], key: string | null) => Response;
  /** Responds to a read of plants. Unless it is given, there are none. */
  readonly read?: (url: string) => Response;
}

/** Imports rows into a service that responds by a script. Their lines are 2, 3 and so on. */
async function importRows(rows: readonly SentRow[], script: ServiceScript) {
  const fetch = async (url: string, { method, headers, body }: RequestInit) => {
    if (method !== "POST") return script.read?.(url) ?? Response.json([]);
    return script.store(JSON.parse(String(body)), new Headers(headers).get("idempotency-key"));
  };
  const client = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const valid = rows.map((draft, index) => ({ line: index + 2, draft }));
  const importer = new Importer(client, { key: makeImportKey(valid), stop: new Stop() });
  const error = await importer.send(valid).catch((reason: Error) => reason.message);
  return { error, importer };
}

function problem(status: number, code: string): Response {
  const type = `urn:plantstore:problem:${code}`;
  const headers = { "content-type": "application/problem+json" };
  return Response.json({ type, detail: "As it says." }, { status, headers });
}

/** The importer asks for the last plant before it sends rows without ids. */
const isForLastPlant = (url: string) => url.includes("order=desc");

test("a full garden ends the import, after every result of its request was counted", async () => {
  const full = { status: 507, code: "storage-full", detail: "The garden is full." };
  const conflict = { status: 409, code: "conflict", detail: "No id is left to assign." };
  const rows = [{ name: "Fern" }, { name: "Moss" }, { name: "Ivy" }, { name: "Rose" }];

  const { error, importer } = await importRows(rows, {
    store: () => Response.json([full, { status: 201, id: 1 }, full, conflict]),
  });

  expect(error).toBe("The garden is full.");
  expect(importer.stored).toBe(1);
  expect(importer.storedMax).toBe(1);
  expect(importer.refused).toEqual([{ line: 5, error: "No id is left to assign." }]);
  expect(importer.isDone).toBe(false);
});

describe("a full disk", () => {
  const message = "The service's disk is full. Make room there.";

  test("ends the import, and nothing was stored if the service says so", async () => {
    const { error, importer } = await importRows([{ name: "Fern" }], {
      store: () => problem(507, "storage-full"),
    });

    expect(error).toBe(message);
    expect(importer.stored).toBe(0);
    expect(importer.storedMax).toBe(0);
  });

  test.each([1, 37, 499])("that let %d of 500 rows through added these", async (storedCount) => {
    const rows = Array.from({ length: 500 }, (_, index) => ({ name: `Fern ${index}` }));
    const plants = rows
      .slice(0, storedCount)
      .map(({ name }, index) => ({ id: index + 1, name, tag: "" }));
    let bulksCount = 0;

    const { error, importer } = await importRows(rows, {
      store(sent) {
        bulksCount++;
        // The service doesn't know how many are stored. The client sends them again.
        if (bulksCount === 1) return problem(503, "unavailable");
        if (sent.length > storedCount) return problem(507, "storage-full");
        return Response.json(
          sent.map((_, index) => ({ status: 201, id: index + 1, replayed: true })),
        );
      },
      read: (url) => Response.json(isForLastPlant(url) ? [] : plants),
    });

    expect(error).toBe(message);
    expect(importer.stored).toBe(storedCount);
    expect(importer.storedMax).toBe(storedCount);
    expect(importer.alreadyThere).toBe(0);
  });
});

describe("an import whose token expires before it has compared all rows", () => {
  /** One row is there already, and one is added. Three more rows were stored by some request. */
  async function importUntilTokenExpires() {
    const rows = [
      { name: "Rose", id: 7 },
      { name: "Tulip", id: 8 },
      { name: "Fern" },
      { name: "Moss" },
      { name: "Ivy" },
    ];
    const reads = [
      // The plant that the row with the id 7 is compared with.
      [{ id: 7, name: "Rose", tag: "" }],
      // The last plant before the import: higher ids may be the import's own.
      [{ id: 10, name: "Oak", tag: "" }],
    ];
    const { importer } = await importRows(rows, {
      store(sent) {
        if (sent[0]?.id === 7) {
          return Response.json([
            { status: 409, code: "conflict", detail: "It is taken." },
            { status: 201, id: 8 },
          ]);
        }
        return Response.json([
          { status: 201, id: 4, replayed: true },
          { status: 201, id: 11, replayed: true },
          { status: 201, id: 12, replayed: true },
        ]);
      },
      read() {
        const plants = reads.shift();
        return plants ? Response.json(plants) : problem(401, "unauthenticated");
      },
    });
    return importer;
  }

  test("counts the rows that were there and were not compared", async () => {
    const importer = await importUntilTokenExpires();

    expect(importer.alreadyThere).toBe(1);
    expect(importer.notCompared).toBe(1);
  });

  test("counts the rows that it may have stored itself as perhaps added", async () => {
    const importer = await importUntilTokenExpires();

    expect(importer.stored).toBe(1);
    expect(importer.storedMax).toBe(3);
  });

  test("says all of that", async () => {
    const importer = await importUntilTokenExpires();

    expect(describeImport(importer, 1_000)).toBe(
      "Added at least 1, at most 3 plants in 1.0 s. The outcome of the last request is unknown. " +
        "1 was already there. 1 row was not compared with what is there.",
    );
  });
});

describe("an import whose last request has an unknown outcome", () => {
  /** Two rows, of which the service can't say whether it stored them until `respond` is set. */
  async function importWithUnknownOutcome() {
    const service = {
      respond: (_rows: readonly SentRow[]): Response => problem(503, "unavailable"),
    };
    const { importer } = await importRows([{ name: "Fern" }, { name: "Moss" }], {
      store: (rows) => service.respond(rows),
      read: (url) => Response.json(isForLastPlant(url) ? [] : [{ id: 1, name: "Fern", tag: "" }]),
    });
    return { importer, service };
  }

  test("may have stored all of its rows", async () => {
    const { importer } = await importWithUnknownOutcome();

    expect(importer.stored).toBe(0);
    expect(importer.storedMax).toBe(2);
  });

  test("knows no more after a second request that is refused", async () => {
    const { importer, service } = await importWithUnknownOutcome();
    service.respond = () => problem(401, "unauthenticated");

    const error = await importer.settle().catch((reason: Error) => reason.message);

    expect(error).toBe("As it says.");
    expect(importer.stored).toBe(0);
    expect(importer.storedMax).toBe(2);
  });

  test("finds it out by sending the request once more, even after a refused one", async () => {
    const { importer, service } = await importWithUnknownOutcome();
    service.respond = () => problem(401, "unauthenticated");
    await importer.settle().catch(() => {});
    // The first row was stored before, and the second one is now.
    service.respond = () =>
      Response.json([
        { status: 201, id: 1, replayed: true },
        { status: 201, id: 2, replayed: false },
      ]);

    await importer.settle();

    expect(importer.stored).toBe(2);
    expect(importer.storedMax).toBe(2);
    expect(importer.alreadyThere).toBe(0);
  });
});

// Otherwise a file that was imported before an upgrade would be stored again: see wire-text.ts.
test("a file goes in the same bulks, under the same keys, as it did in 3.0", async () => {
  const rows = Array.from({ length: 2_000 }, (_, index) => ({ name: `${index}`.padEnd(200, "x") }));
  const bulks: { key: string | null; rows: number }[] = [];

  await importRows(rows, {
    store(sent, key) {
      bulks.push({ key, rows: sent.length });
      return Response.json(sent.map((_, index) => ({ status: 201, id: index })));
    },
  });

  expect(bulks).toEqual([
    { key: "import-ae1a2f6b4eb8827b.0", rows: 1_231 },
    { key: "import-ae1a2f6b4eb8827b.1231", rows: 769 },
  ]);
});
