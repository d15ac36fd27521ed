/** Who gets a place, who waits for one, and who is refused. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { overloaded } from "../../domain/errors.ts";
import { WaitingLine } from "./waiting-line.ts";

const waitingMax = 16_384;
const patienceMs = 500;

let nowMs = 0;
let clock: ReturnType<typeof spyOn>;

beforeEach(() => {
  nowMs = 1_000;
  clock = spyOn(performance, "now").mockImplementation(() => nowMs);
});

afterEach(() => {
  clock.mockRestore();
});

/** What became of those who came, in the order in which it did. */
function follow(line: WaitingLine) {
  const ends: string[] = [];
  const come = (name: string) =>
    line.enter()?.then(
      () => ends.push(`${name} in`),
      (error) => ends.push(error === overloaded ? `${name} refused` : String(error)),
    );
  return { ends, come };
}

test("as many as there are places enter at once", () => {
  const line = new WaitingLine(2);
  expect(line.enter()).toBeUndefined();
  expect(line.enter()).toBeUndefined();
  expect(line.enter()).toBeInstanceOf(Promise);
});

test("who leaves lets the first who waits in, and no other", async () => {
  const line = new WaitingLine(1);
  const { ends, come } = follow(line);
  come("first");
  const waiting = [come("second"), come("third")];
  line.leave();
  await waiting[0];
  expect(ends).toEqual(["second in"]);
  line.leave();
  await waiting[1];
  expect(ends).toEqual(["second in", "third in"]);
});

test("a place that nobody waits for is free again", () => {
  const line = new WaitingLine(1);
  line.enter();
  line.leave();
  expect(line.enter()).toBeUndefined();
  expect(line.enter()).toBeInstanceOf(Promise);
});

test("who waited 500 ms may enter, who waited longer is refused for the sake of those behind", async () => {
  const line = new WaitingLine(1);
  const { ends, come } = follow(line);
  come("first");
  const late = [come("late"), come("also late")];
  nowMs += 1;
  const inTime = come("in time");
  come("behind");
  nowMs += patienceMs;
  line.leave();
  await Promise.all([...late, inTime]);
  expect(ends).toEqual(["late refused", "also late refused", "in time in"]);
});

test("thousands who are late are refused 256 a turn, and the place is kept for who is not", async () => {
  const line = new WaitingLine(1);
  const { ends, come } = follow(line);
  come("first");
  for (let count = 0; count < 600; count++) come("late");
  nowMs += patienceMs + 1;
  come("in time");
  come("behind");
  line.leave();
  for (const refused of [256, 512, 600]) {
    await Promise.resolve();
    expect(ends.filter((end) => end === "late refused").length).toBe(refused);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(ends.slice(600)).toEqual(["in time in"]);
});

test("the last may enter however long it waited", async () => {
  const line = new WaitingLine(1);
  const { ends, come } = follow(line);
  come("first");
  const last = come("last");
  nowMs += 10 * patienceMs;
  line.leave();
  await last;
  expect(ends).toEqual(["last in"]);
});

test("as many wait as may, and one more is refused at once", () => {
  const line = new WaitingLine(1);
  line.enter();
  for (let count = 0; count < waitingMax; count++) line.enter();
  expect(() => line.enter()).toThrow(overloaded);
  line.leave();
  expect(line.enter()).toBeInstanceOf(Promise);
  expect(() => line.enter()).toThrow(overloaded);
});
