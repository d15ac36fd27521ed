/** Which requests pass in a turn of the event loop, in which order, and who is refused. */
import { expect, test } from "bun:test";
import { Turnstile, type TurnstileOptions, turnstileDefaults } from "./turnstile.ts";

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

const patienceMs = 30_000;

/**
 * One whose turn began so long ago that nobody passes at once any more, with a request that took
 * all of it.
 */
function makeBusy(options: Partial<TurnstileOptions> = {}): Turnstile {
  const turnstile = new Turnstile({ ...turnstileDefaults, passedMin: 1, patienceMs, ...options });
  expect(enterAll(turnstile, "x", performance.now() - 2 * patienceMs)).toEqual(["x"]);
  return turnstile;
}

async function untilEmpty(entered: readonly string[], count: number): Promise<void> {
  for (let turns = 0; entered.length < count && turns < 100; turns++) await nextTurn();
}

test("all pass at once while a turn is young", () => {
  const names = "abcdefghijklmnop";
  expect(enterAll(new Turnstile(), names)).toEqual([...names]);
});

test("a few pass at once in any turn", () => {
  const entered = enterAll(makeBusy({ passedMin: 3 }), "abc");
  expect(entered).toEqual(["a", "b"]);
});

test("a turn begins anew after the last", async () => {
  const turnstile = makeBusy();
  await nextTurn();
  expect(enterAll(turnstile, "ab")).toEqual(["a", "b"]);
});

test("who comes when its time is over waits, and passes later in the order of coming", async () => {
  const entered = enterAll(makeBusy(), "abcdef");
  expect(entered).toEqual([]);
  await untilEmpty(entered, 6);
  expect(entered).toEqual([..."abcdef"]);
});

test("as many pass as fit into the next turn by the time that one took", async () => {
  const entered = enterAll(makeBusy(), "abcdef");
  await nextTurn();
  // One took a minute, and no turn should take so long.
  expect(entered).toEqual(["a"]);
});

test("nobody overtakes those who wait", async () => {
  const turnstile = makeBusy();
  const entered = enterAll(turnstile, "ab");
  await nextTurn();
  const later = enterAll(turnstile, "c");
  expect([...entered, ...later]).toEqual(["a"]);
  await untilEmpty(later, 1);
  expect([...entered, ...later]).toEqual(["a", "b", "c"]);
});

test("those who come when as many wait as may are refused, and the others are not", async () => {
  const entered = enterAll(makeBusy({ waitingMax: 3 }), "abcde");
  await untilEmpty(entered, 5);
  expect(entered.filter((name) => name.startsWith("-"))).toEqual(["-d", "-e"]);
  expect(entered.filter((name) => !name.startsWith("-"))).toEqual(["a", "b", "c"]);
});

test("who waited longer than is worth it is refused, and those behind are not", async () => {
  const turnstile = makeBusy();
  const late = enterAll(turnstile, "ab", performance.now() - patienceMs - 1);
  const inTime = enterAll(turnstile, "c");
  await untilEmpty(inTime, 1);
  expect(late).toEqual(["-a", "-b"]);
  expect(inTime).toEqual(["c"]);
});
