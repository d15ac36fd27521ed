/** Failures of the storage, and overload: what callers see, and what the log says. */
import { describe, expect, spyOn, test } from "bun:test";
import { PlantStoreError } from "../../src/domain/errors.ts";
import { overloaded } from "../../src/limits/overload.ts";
import { waitFor } from "../../testing/running-service.ts";
import { openGarden } from "./garden.ts";

const garden = openGarden("SQLite");
const { call, fetch, plant, service } = garden;

test.each([
  { request: "GET /plants", refusedReads: [2, 3], found: 2_500 },
  { request: "GET /plants?q=oak", refusedReads: [1, 3], found: 0 },
  { request: "GET /plants?q=oak&limit=5", refusedReads: [1, 3], found: 0 },
])("$request that has begun waits while the storage is busy", async (row) => {
  await plant(Array(2_500).fill({}));
  const list = service.storage.list.bind(service.storage);
  const refusedReads: readonly number[] = row.refusedReads;
  let reads = 0;
  using _ = spyOn(service.storage, "list").mockImplementation((...parameters) => {
    reads++;
    return refusedReads.includes(reads) ? Promise.reject(overloaded) : list(...parameters);
  });

  const { json } = await call(row.request, 200);

  expect(json).toHaveLength(row.found);
  expect(reads).toBeGreaterThan(3);
});

describe.each([
  { code: "internal", status: 500, failure: new TypeError("the cause") },
  {
    code: "unavailable",
    status: 503,
    failure: new PlantStoreError("unavailable", "No.", { cause: Error("the cause") }),
  },
  {
    code: "storage-full",
    status: 507,
    failure: new PlantStoreError("storage-full", "No.", { cause: Error("the cause") }),
  },
])("if reading a list fails with $code,", ({ code, status, failure }) => {
  /** Requests a list that can't be read. */
  async function fetchFailingList(): Promise<Response> {
    using _ = spyOn(service.storage, "list").mockImplementation(() => Promise.reject(failure));
    return await fetch("GET /plants", undefined, { "X-Request-Id": "the-one" });
  }

  test(`the response is a ${status} that hides the cause`, async () => {
    const response = await fetchFailingList();
    expect(response.status).toBe(status);
    expect(await response.text()).not.toContain("the cause");
  });

  test("the log has the cause, with the request's id, user and garden", async () => {
    await fetchFailingList();

    // The service first checks whether the storage responds at all.
    const line = await waitFor(() =>
      service
        .readLog()
        .split("\n")
        .find((each) => each.includes('"request failed"') && each.includes(garden.name)),
    );
    expect(JSON.parse(line)).toMatchObject({
      code,
      requestId: "the-one",
      user: "ann",
      garden: garden.name,
    });
    expect(line).toContain("the cause");
  });
});

describe("overload", () => {
  const { call, fetch, service } = openGarden("SQLite");

  test("is logged as one number of refusals, and not as many failures", async () => {
    await call("GET /plants", 200);
    service.clock.stepMs = 6;
    const responses = await Promise.all(Array.from({ length: 60 }, () => fetch("GET /plants")));
    const refused = responses.filter(({ status }) => status === 503);

    const logged = await waitFor(() => {
      const line = /"overloaded","refused":(\d+)/.exec(service.readLog());
      return line ? Number(line[1]) : undefined;
    });

    expect(logged).toBe(refused.length);
    expect(service.readLog()).not.toContain("request failed");
  });
});
