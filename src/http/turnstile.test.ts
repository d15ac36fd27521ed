/** How many requests pass in a turn of the event loop, in which order, and who is refused. */
import { expect, test } from "bun:test";
import { Turnstile, turnstileDefaults } from "./turnstile.ts";

/** Two a turn, however slow the machine is. */
const options = {
  ...turnstileDefaults,
  turnMs: 60_000,
  passedMax: 2,
  passedMin: 2,
  patienceMs: 60_000,
};
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** What became of each so far, in the order in which it did: "a" passed, "-a" was refused. */
function enterAll(turnstile: Turnstile, names: string, nowMs = performance.now()): string[] {
  const entered: string[] = [];
  for (const name of names) {
    const turn = turnstile.enter(nowMs);
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

test("a turn begins anew, whether the one before was crowded or not", async () => {
  const turnstile = new Turnstile(options);
  for (const names of ["a", "ab", "abc", "ab"]) {
    expect(enterAll(turnstile, names)).toEqual([...names].slice(0, 2));
    await nextTurn();
    await nextTurn();
  }
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

test("when requests take long, fewer pass in a turn", async () => {
  const turnstile = new Turnstile({ ...turnstileDefaults, passedMin: 1, patienceMs: 60_000 });
  const nowMs = performance.now();
  // Ten that took 250 ms together: in 25 ms it would have been one.
  expect(enterAll(turnstile, "0123456789", nowMs - 250)).toHaveLength(10);
  const entered = enterAll(turnstile, "abcdef");
  expect(entered).toEqual([]);
  await nextTurn();
  expect(entered).toEqual(["a"]);
  for (let turns = 0; turns < 5; turns++) await nextTurn();
  expect(entered).toEqual([..."abcdef"]);
});
