/** How many requests pass in a turn of the event loop, in which order, and who is refused. */
import { expect, test } from "bun:test";
import { Turnstile, turnstileDefaults } from "./turnstile.ts";

const options = { ...turnstileDefaults, passedAtOnce: 2, patienceMs: 60_000 };
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** What became of each so far, in the order in which it did: "a" passed, "-a" was refused. */
function enterAll(turnstile: Turnstile, names: string, sinceMs = performance.now()): string[] {
  const entered: string[] = [];
  for (const name of names) {
    const turn = turnstile.enter(sinceMs);
    if (!turn) entered.push(name);
    turn?.then((mayPass) => entered.push(mayPass ? name : `-${name}`));
  }
  return entered;
}

test("as many as may pass do so at once, and the others in the next turns, in their order", async () => {
  const entered = enterAll(new Turnstile(options), "abcde");
  expect(entered).toEqual(["a", "b"]);
  await nextTurn();
  expect(entered).toEqual(["a", "b", "c", "d"]);
  await nextTurn();
  expect(entered).toEqual(["a", "b", "c", "d", "e"]);
});

test("nobody overtakes those who wait", async () => {
  const turnstile = new Turnstile(options);
  const entered = enterAll(turnstile, "abcdef");
  await nextTurn();
  const later = enterAll(turnstile, "g");
  expect(later).toEqual([]);
  await nextTurn();
  expect(entered).toHaveLength(6);
  expect(later).toEqual([]);
  await nextTurn();
  expect(later).toEqual(["g"]);
});

test("a calm turn after a crowded one is open again", async () => {
  const turnstile = new Turnstile(options);
  enterAll(turnstile, "abc");
  await nextTurn();
  await nextTurn();
  expect(enterAll(turnstile, "d")).toEqual(["d"]);
});

test("those who come when as many wait as may are refused in the next turn", async () => {
  const entered = enterAll(new Turnstile({ ...options, waitingMax: 3 }), "abcdefg");
  await nextTurn();
  expect(entered).toEqual(["a", "b", "-f", "-g", "c", "d"]);
  await nextTurn();
  expect(entered).toEqual(["a", "b", "-f", "-g", "c", "d", "e"]);
});

test("who waited longer than is worth it is refused, and those behind are not", async () => {
  const turnstile = new Turnstile({ ...options, patienceMs: 10_000 });
  const nowMs = performance.now();
  enterAll(turnstile, "ab");
  const late = enterAll(turnstile, "cde", nowMs - 10_001);
  const inTime = enterAll(turnstile, "fgh", nowMs);
  await nextTurn();
  expect(late).toEqual(["-c", "-d", "-e"]);
  expect(inTime).toEqual(["f", "g"]);
  await nextTurn();
  expect(inTime).toEqual(["f", "g", "h"]);
});
