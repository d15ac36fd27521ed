/** Nothing may change on the way between the threads. */
import { expect, test } from "bun:test";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import type { Outcome, Write } from "../../domain/storage.ts";
import { packOutcomes, packWrites, unpackOutcomes, unpackWrites } from "./wire.ts";

test("writes arrive as they were sent", () => {
  const idempotency = { key: "k", request: '["7","a",""]', nowMs: 1, expiresAtMs: 2 };
  const create = { kind: "create", garden: "g", name: 'a "b" \\ \u{1f33f}\n', tag: "" } as const;
  const writes: Write[] = [
    { ...create, id: undefined, idempotency: undefined },
    { ...create, id: plantIdMin, idempotency },
    { ...create, id: 0n, idempotency: undefined },
    { kind: "delete", garden: "g", id: plantIdMax },
  ];
  expect(unpackWrites(packWrites(writes))).toEqual(writes);
});

test("outcomes arrive as they were sent", () => {
  const outcomes: Outcome[] = [
    { kind: "created", id: 2n ** 53n + 1n, replayed: true },
    { kind: "taken" },
    { kind: "exhausted" },
    { kind: "mismatch" },
    { kind: "deleted" },
    { kind: "missing" },
  ];
  expect(unpackOutcomes(packOutcomes(outcomes))).toEqual(outcomes);
});
