/**
 * Updates that the service ends, in ways that the real one can't be made to. The others are in
 * test/end-to-end/import-update.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { PlantStore } from "../plant-store.ts";
import { Comparison } from "./comparison.ts";
import { Stop } from "./stop.ts";
import { describeUpdate, Updater } from "./updater.ts";

/** Changes the tag of plant 7, Fern, from shade to hall, while the service responds like this. */
async function updateFern(responses: readonly Response[]) {
  const unused = [...responses];
  const fetch = async () => unused.shift() ?? new Response(null, { status: 500 });
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch, retries: 1 });
  const comparison = new Comparison([{ line: 2, draft: { id: 7n, tag: "hall" } }], "csv");
  comparison.take([{ id: 7n, name: "Fern", tag: "shade" }]);
  comparison.finish();
  const changed: { before: unknown; after: unknown }[] = [];
  const updater = new Updater(store, comparison, {
    stop: new Stop(),
    onChanged: ({ before }, after) => changed.push({ before, after }),
  });
  const error = await updater.send().catch((reason: Error) => reason.message);
  return { updater, changed, error, unused };
}

/** A response with the plant 7. */
function plantResponse(tag: string): Response {
  return Response.json({ id: 7, name: "Fern", tag }, { headers: { etag: `"${tag}"` } });
}

function problemResponse(status: number, code: string): Response {
  const type = `urn:plantstore:problem:${code}`;
  const headers = { "content-type": "application/problem+json" };
  return Response.json({ type, detail: "As it says." }, { status, headers });
}

// So that people can undo it.
test("a changed plant is reported as it was and as it is", async () => {
  const { changed } = await updateFern([plantResponse("shade"), plantResponse("hall")]);

  expect(changed).toEqual([
    {
      before: { id: 7n, name: "Fern", tag: "shade" },
      after: { id: 7n, name: "Fern", tag: "hall", etag: '"hall"' },
    },
  ]);
});

describe("a change whose response was lost before another user changed the plant", () => {
  const updateWithLostResponse = () =>
    updateFern([
      plantResponse("shade"),
      problemResponse(503, "unavailable"),
      problemResponse(412, "precondition-failed"),
      plantResponse("pond"),
      plantResponse("pond"),
    ]);

  test("may have been made", async () => {
    const { updater } = await updateWithLostResponse();

    expect(updater.changed).toBe(0);
    expect(updater.changedMax).toBe(1);
  });

  test("doesn't end the update", async () => {
    const { updater, error, unused } = await updateWithLostResponse();

    expect(error).toBeUndefined();
    expect(unused).toEqual([]);
    expect(updater.isDone).toBe(true);
  });

  test("is refused, with the plant as it is now", async () => {
    const { updater } = await updateWithLostResponse();

    expect(updater.refused).toEqual([
      { line: 2, error: "plant 7 was changed meanwhile to Fern (pond); the file has Fern (hall)" },
    ]);
  });

  test("is described as unknown", async () => {
    const { updater } = await updateWithLostResponse();

    expect(describeUpdate(updater, 1_000)).toBe(
      "Changed at least 0, at most 1 plant in 1.0 s. The outcome of the last requests is unknown. " +
        "1 row was refused.",
    );
  });
});

test("a change that is refused for certain wasn't made, and ends the update", async () => {
  const { updater, error } = await updateFern([
    plantResponse("shade"),
    problemResponse(403, "forbidden"),
  ]);

  expect(error).toBe("As it says.");
  expect(updater.changed).toBe(0);
  expect(updater.changedMax).toBe(0);
  expect(updater.isDone).toBe(false);
});
