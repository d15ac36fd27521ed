/** What clients can't see of bulks: how much is done at a time. */
import { describe, expect, test } from "bun:test";
import type { ValidationError } from "../domain/errors.ts";
import { BulkResults, readBulk } from "./bulk.ts";
import { ReservedBytes } from "./reserved-bytes.ts";

async function read(text: string) {
  const errors: ValidationError[] = [];
  let turns = 0;
  const reserved = new ReservedBytes().open("garden");
  const drafts = await readBulk(text, errors, { turn: async () => turns++, reserved });
  return { drafts, errors, turns };
}

describe("a bulk", () => {
  test("is validated in turns, whatever its plants hold", async () => {
    const plants = Array.from({ length: 1_000 }, (_, index) => ({ name: `Plant ${index}` }));
    const { drafts, turns } = await read(JSON.stringify(plants));
    expect(turns).toBeGreaterThan(10);
    expect(drafts.map(({ name }) => ({ name }))).toEqual(plants);
    const long = Array.from({ length: 100 }, () => ({ name: "x".repeat(4_000) }));
    expect((await read(JSON.stringify(long))).turns).toBeGreaterThan(5);
  });

  test("has results that are rendered in chunks, and make one array", async () => {
    const results = new BulkResults(5_000);
    for (let index = 0; index < 5_000; index++) {
      const id = BigInt(index);
      const outcome = index % 2 === 0 ? ({ kind: "taken" } as const) : undefined;
      results.note(
        index,
        { name: "Fern", tag: "", id },
        outcome ?? { kind: "created", id, replayed: false },
      );
    }
    const body = results.render();
    if (typeof body === "string") throw new Error("The results came whole.");
    const chunks: string[] = [];
    for (let next = await body.next(); next !== undefined; next = await body.next()) {
      chunks.push(next);
    }
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(17_000);
    const statuses = JSON.parse(chunks.join("")).map(({ status }: { status: number }) => status);
    expect(statuses).toEqual(Array.from({ length: 5_000 }, (_, index) => (index % 2 ? 201 : 409)));
  });
});
