/** What an import sends: the same requests each time, so that the service recognizes them. */
import { expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { Importer, makeImportKey, StorageFullError } from "./importer.ts";
import type { ValidRow } from "./rows.ts";

const bulkBytesMax = 256 * 1024;

/** Long enough for several requests, with and without ids. */
const rows: ValidRow[] = Array.from({ length: 6_000 }, (_, index) => ({
  line: index + 2,
  draft: {
    name: `Plant ${index} `.padEnd(120, "盆"),
    ...(index % 4 === 0 && { id: BigInt(index) }),
  },
}));

interface Sent {
  readonly key: string;
  readonly body: string;
}

/** Imports rows. `respond` may do anything but create every plant. */
async function send(
  some: readonly ValidRow[],
  respond = (_: Sent): Response | undefined => undefined,
) {
  const sent: Sent[] = [];
  const fetch = async (_url: string, { headers, body }: RequestInit) => {
    const request = { key: new Headers(headers).get("idempotency-key") ?? "", body: String(body) };
    sent.push(request);
    const drafts: { id?: number }[] = JSON.parse(request.body);
    return (
      respond(request) ??
      Response.json(drafts.map(({ id }, index) => ({ status: 201, id: id ?? index })))
    );
  };
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const { signal } = new AbortController();
  const importer = new Importer(store, { key: makeImportKey(some), signal });
  const error = await importer.send(some).catch((reason: unknown) => reason);
  return { sent, importer, error };
}

const withoutIds = (sent: readonly Sent[]) => sent.filter(({ key }) => key.startsWith("import-"));

test("rows with ids go first, each in their order, in requests of at most 256 KiB", async () => {
  const { sent, importer } = await send(rows);
  for (const { body } of sent) expect(Buffer.byteLength(body)).toBeLessThanOrEqual(bulkBytesMax);
  const drafts = rows.map(({ draft }) => ({
    ...draft,
    ...(draft.id !== undefined && { id: Number(draft.id) }),
  }));
  const expected = [true, false].flatMap((hasId) =>
    drafts.filter(({ id }) => (id !== undefined) === hasId),
  );
  expect(sent.flatMap(({ body }) => JSON.parse(body))).toEqual(expected);
  expect(importer).toMatchObject({ stored: 6_000, done: 6_000, isDone: true });
});

test("the same rows make the same requests, even after a 503 and an interruption", async () => {
  const whole = withoutIds((await send(rows)).sent);
  expect(whole.length).toBeGreaterThan(3);
  expect(new Set(whole.map(({ key }) => key)).size).toBe(whole.length);
  let busy = 1;
  const retried = await send(rows, ({ key }) =>
    key === whole[1]?.key && busy-- > 0 ? new Response(null, { status: 503 }) : undefined,
  );
  const [first, second, ...others] = whole as [Sent, Sent];
  expect(withoutIds(retried.sent)).toEqual([first, second, second, ...others]);
  const cut = await send(rows, ({ key }) =>
    key === second.key ? new Response(null, { status: 500 }) : undefined,
  );
  expect(withoutIds(cut.sent)).toEqual([first, second]);
  expect(cut.importer.isDone).toBe(false);
});

test("a file with other rows, or in another order, has another key", () => {
  const keys = [
    rows,
    rows.slice(1),
    rows.toReversed(),
    rows.map(({ line, draft }, index) => ({
      line,
      draft: index === 3_000 ? { ...draft, tag: "hall" } : draft,
    })),
  ].map(makeImportKey);
  expect(new Set(keys).size).toBe(keys.length);
  expect(makeImportKey(rows.map(({ draft }) => ({ line: 1, draft })))).toBe(makeImportKey(rows));
});

test("a full garden ends the import, after every result of its request was counted", async () => {
  const full = { status: 507, code: "storage-full", detail: "The garden is full." };
  const { importer, error } = await send(rows.slice(1, 4), () =>
    Response.json([full, { status: 201, id: 1 }, full]),
  );
  expect(error).toEqual(new StorageFullError("The garden is full."));
  expect(importer).toMatchObject({ stored: 1, refused: [], isDone: false });
});

test("a row that the service refuses for another reason is listed with that", async () => {
  const detail = "No id is left to assign. Send one with the plant.";
  const { importer } = await send(rows.slice(1, 2), () =>
    Response.json([{ status: 409, code: "conflict", detail }]),
  );
  expect(importer.refused).toEqual([{ line: 3, error: detail }]);
});
