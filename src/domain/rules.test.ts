/**
 * Writes come to what the histories' model of a garden says, whatever is in a group, on both
 * engines: PostgreSQL's statement for plain creates states the rules a second time.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { auditStore } from "../../proofs/audited-store.ts";
import { type Call, Garden, renderEvent } from "../../proofs/histories/garden-model.ts";
import { makeDatabase } from "../../test/postgres-server.ts";
import { create, put, remove } from "../../test/storage/tested-storage.ts";
import { fastestParent, makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { openStorage } from "../storage/open.ts";
import { assignedIdMax, contentHash, type Plant } from "./plant.ts";
import type { Outcome, Write } from "./ports.ts";

interface Sent {
  readonly garden: string;
  readonly call: Extract<Call, { readonly kind: "create" | "put" | "patch" | "delete" }>;
}

// Few of everything, so that calls meet.
const id = fc.constantFrom(-1n, 1n, 2n, 3n, assignedIdMax - 1n, assignedIdMax, 2n ** 63n - 1n);
const name = fc.constantFrom("Fern", "Moss");
const tag = fc.constantFrom("", "shade");
/** Of a plant alone, or with its place in a bulk. The last one is in another row. */
const key = fc.constantFrom("a", "b", "a 0", "a 1", "a 300");
const seen = fc.record({ id, name, tag }).map((plant) => {
  return { ...plant, entityTag: contentHash(plant) };
});
const ifMatch = fc.oneof(fc.constant("*" as const), seen);
const isForNew = fc.constant(true);
/** One statement does those without an id and without a place in a bulk. */
const makeCreate = (optional: { id?: typeof id; key: fc.Arbitrary<string> }) =>
  fc.record(
    { kind: fc.constant("create" as const), name, tag, ...optional },
    { requiredKeys: ["kind", "name", "tag"] },
  );
const plainCall = makeCreate({ key: fc.constantFrom("a", "b", "c", "d", "e") });
const call = fc.oneof<fc.Arbitrary<Sent["call"]>[]>(
  makeCreate({ id, key }),
  fc.record(
    { kind: fc.constant("put"), id, name, tag, ifMatch, isForNew },
    { requiredKeys: ["kind", "id", "name", "tag"] },
  ),
  fc.record(
    { kind: fc.constant("patch"), id, name, tag, ifMatch },
    { requiredKeys: ["kind", "id"] },
  ),
  fc.record({ kind: fc.constant("delete"), id, ifMatch }, { requiredKeys: ["kind", "id"] }),
);
const makeGroup = (call: fc.Arbitrary<Sent["call"]>) =>
  fc.array(fc.record({ garden: fc.constantFrom("one", "two"), call }), {
    minLength: 1,
    maxLength: 12,
  });
const group = fc.oneof(makeGroup(call), makeGroup(plainCall));
const groups = fc.array(group, { minLength: 1, maxLength: 12 });

describe.each(["SQLite", "PostgreSQL"] as const)("on %s,", (engine) => {
  test.each([undefined, 0, 2, 5])(
    "random groups have the outcomes of the model, and leave its plants and events, in gardens of up to %d",
    async (plantsMax) => {
      using folder = makeTemporaryFolder(fastestParent());
      await using database = engine === "SQLite" ? undefined : await makeDatabase();
      const address = database?.url ?? join(folder.path, "plants.db");
      const storage = await openStorage(address, { isServing: false, plantsMax });
      let run = 0;
      const property = fc.asyncProperty(groups, async (sentGroups) => {
        const models = new Map<string, Garden>();
        run++;
        const nameOf = (garden: string) => `${garden} ${run}`;
        for (const sent of sentGroups) {
          const expected = sent.map(({ garden, call }) => {
            const model =
              models.get(garden) ?? Garden.limitedTo(plantsMax ?? Number.POSITIVE_INFINITY);
            const { garden: after, response } = model.take(call, "ada");
            models.set(garden, after);
            return response;
          });
          const writes = sent.map((each) => toWrite(each, nameOf(each.garden)));
          const outcomes = await storage.apply(writes);
          expect(outcomes.map((outcome, at) => toResponse(outcome, sent[at]))).toEqual(expected);
        }
        for (const [garden, model] of models) {
          const plants = await storage.list(nameOf(garden), undefined, 1_000);
          const listed = plants.map((plant) => `{"id":${plant.id},${render(plant).slice(1)}`);
          const { response } = model.take({ kind: "list", include: "id" });
          expect(`200 [${listed}]`).toBe(response);
          const { events, lastEvent } = await storage.readEvents(nameOf(garden), 0, 1_000, 1e6);
          const rendered = events.map(({ type, user, plant }) =>
            renderEvent(`plant.${type}`, user, plant),
          );
          expect([...rendered, lastEvent]).toEqual([...model.events, model.events.length]);
        }
      });
      // Each takes ten times as long on PostgreSQL.
      await fc.assert(property, { numRuns: engine === "SQLite" ? 125 : 12, seed: 1 });
      await storage.close();
      expect(await auditStore(address)).toEqual([]);
    },
    120_000,
  );
});

function toWrite({ call: sent }: Sent, garden: string): Write {
  if (sent.kind === "create") {
    const { key, ...fields } = sent;
    const [ofRequest, place] = key?.split(" ") ?? [];
    const index = place === undefined ? undefined : Number(place);
    const idempotency = ofRequest ? { key: ofRequest, index, nowMs: 0, expiresAtMs: 1 } : undefined;
    return create({ ...fields, garden, idempotency });
  }
  const { kind, id: plantId, ifMatch: match, ...rest } = sent;
  const hashes = match === undefined || match === "*" ? match : ["other", match.entityTag];
  const preconditions = { ifMatch: hashes };
  const named = remove(plantId, garden);
  if (kind === "delete") return { ...named, preconditions };
  if (kind === "patch") return { ...named, kind, change: rest, preconditions };
  const ifNoneMatch = sent.isForNew ? "*" : undefined;
  return put({ ...rest, garden, id: plantId, preconditions: { ...preconditions, ifNoneMatch } });
}

/** As the model has it. */
function toResponse(outcome: Outcome, sent: Sent | undefined): string {
  const { kind } = outcome;
  if (kind === "replaced") return `200 ${render(sent?.call)}`;
  if (kind === "patched") return `200 ${render(outcome.content)}`;
  if (kind !== "created") return statuses[kind];
  return `201 /plants/${outcome.id}${outcome.replayed ? " replayed" : ""} ${render(sent?.call)}`;
}

const statuses = {
  deleted: "204",
  missing: "404",
  taken: "409",
  exhausted: "409",
  "precondition-failed": "412",
  mismatch: "422",
  full: "507",
} as const;

function render({ name, tag }: Partial<Plant> = {}): string {
  return JSON.stringify({ name, tag });
}
