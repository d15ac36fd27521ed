/** A backup of two moments fails the audit. */
import { expect, test } from "bun:test";
import { LoadedStore } from "./drill.ts";

test("a copy whose halves are of different moments is found", async () => {
  await using store = await LoadedStore.start("SQLite", 3);
  const { ledger } = store;
  await store.grow(30);
  const begun = ledger.moment;
  const early = await store.list();
  await store.grow(30);
  const late = await store.list();
  expect(ledger.auditMoment(late, begun, ledger.moment)).toEqual([]);
  const middle = BigInt(early[early.length >> 1]?.id ?? 0);
  const mixed = [
    ...early.filter(({ id }) => BigInt(id) <= middle),
    ...late.filter(({ id }) => BigInt(id) > middle),
  ];
  expect(ledger.auditMoment(mixed, begun, ledger.moment)).not.toEqual([]);
}, 60_000);
