/**
 * Updates that the service ends, in ways that the real one can't be made to. The others are in
 * test/end-to-end/import-update.test.ts.
 */
import { expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { Comparison } from "./comparison.ts";
import { Stop } from "./stop.ts";
import { describeUpdate, Updater } from "./updater.ts";

/** Changes the tag of plant 7, Fern, from shade to hall, while the service responds like this. */
async function updateFern(...responses: readonly Response[]) {
  const left = [...responses];
  const fetch = async () => left.shift() ?? new Response(null, { status: 500 });
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const comparison = new Comparison([{ line: 2, draft: { id: 7n, tag: "hall" } }], "csv");
  comparison.take([{ id: 7n, name: "Fern", tag: "shade" }]);
  comparison.finish();
  const changed: unknown[] = [];
  const updater = new Updater(store, comparison, {
    stop: new Stop(),
    onChanged: ({ before }, after) => changed.push([before, after]),
  });
  const error = await updater.send().catch((reason: Error) => reason.message);
  return { updater, changed, error, unused: left.length };
}

const fern = (tag: string) =>
  Response.json({ id: 7, name: "Fern", tag }, { headers: { etag: `"${tag}"` } });

function problem(status: number, code: string): Response {
  const type = `urn:plantstore:problem:${code}`;
  const headers = { "content-type": "application/problem+json" };
  return Response.json({ type, detail: "As it says." }, { status, headers });
}

test("each plant that was changed is reported as it was and as it is, so that it can be undone", async () => {
  const { changed } = await updateFern(fern("shade"), fern("hall"));
  expect(changed).toEqual([
    [
      { id: 7n, name: "Fern", tag: "shade" },
      { id: 7n, name: "Fern", tag: "hall", etag: '"hall"' },
    ],
  ]);
});

test("a change whose response was lost before somebody changed the plant may have been made", async () => {
  const { updater, error, unused } = await updateFern(
    fern("shade"),
    problem(503, "unavailable"),
    problem(412, "precondition-failed"),
    fern("pond"),
    fern("pond"),
  );
  expect([error, unused]).toEqual([undefined, 0]);
  expect(updater).toMatchObject({ changed: 0, changedMax: 1, isDone: true });
  expect(updater.refused).toEqual([
    { line: 2, error: "plant 7 was changed meanwhile to Fern (pond); the file has Fern (hall)" },
  ]);
  expect(describeUpdate(updater, 1_000)).toBe(
    "Changed at least 0, at most 1 plant in 1.0 s. The outcome of the last requests is unknown. " +
      "1 row was refused.",
  );
});

test("a change that is refused for certain wasn't made, whatever the reason", async () => {
  const { updater, error } = await updateFern(fern("shade"), problem(403, "forbidden"));
  expect(error).toBe("As it says.");
  expect(updater).toMatchObject({ changed: 0, changedMax: 0, isDone: false });
});
