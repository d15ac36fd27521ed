/** Random numbers and objects, held against BigInt and the engine's own parser. */
import { expect, test } from "bun:test";
import { exactInteger, parseJsonObject } from "./json-text.ts";

/** The same numbers in every run: a linear congruential generator with a fixed seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

type Random = ReturnType<typeof createRandom>;

function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random(items.length)] as Item;
}

function digits(random: Random, count: number): string {
  return Array.from({ length: count }, () => random(10)).join("");
}

function wholeNumber(random: Random): string {
  return pick(random, ["", "-"]) + BigInt(digits(random, 1 + random(19))).toString();
}

test("an integer reads the same however its decimal point and exponent are placed", () => {
  const random = createRandom(1);
  for (let round = 0; round < 5_000; round++) {
    const text = wholeNumber(random).replace(/^-0$/, "0");
    const expected = BigInt(text);
    const zeros = random(4);
    const shift = random(20);
    const unsigned = text.replace("-", "").padStart(shift + 1, "0");
    const sign = text.startsWith("-") ? "-" : "";
    const whole = unsigned.slice(0, unsigned.length - shift).replace(/^0+(?=\d)/, "");
    const fraction = unsigned.slice(unsigned.length - shift) + "0".repeat(zeros);
    const moved = `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}e${shift}`;
    expect([moved, exactInteger(moved)]).toEqual([moved, expected]);
    const long = `${text}${"0".repeat(zeros)}E-${zeros}`;
    expect([long, exactInteger(long)]).toEqual([long, expected]);
  }
});

test("a number that a double holds exactly is an integer where the double is one", () => {
  const random = createRandom(2);
  for (let round = 0; round < 5_000; round++) {
    const value = (random(2 ** 20) - 2 ** 19) / 2 ** random(8);
    const source = String(value);
    const expected = Number.isInteger(value) ? BigInt(value) : undefined;
    expect([source, exactInteger(source)]).toEqual([source, expected]);
  }
});

function space(random: Random): string {
  return pick(random, ["", "", " ", "\n\t", " \r\n "]);
}

function jsonString(random: Random): string {
  const parts = [
    "a",
    "ß",
    "🌱",
    '\\"',
    "\\\\",
    "\\u0022",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\n",
    " ",
  ];
  return `"${Array.from({ length: random(6) }, () => pick(random, parts)).join("")}"`;
}

function jsonValue(random: Random, depth: number): string {
  const kind = random(depth > 0 ? 6 : 4);
  if (kind === 0) return pick(random, ["null", "true", "false"]);
  if (kind === 1) return wholeNumber(random);
  if (kind === 2) return `${wholeNumber(random)}.${digits(random, 3)}e${random(5) - 2}`;
  if (kind === 3) return jsonString(random);
  if (kind === 4) return jsonObject(random, depth - 1);
  const items = Array.from({ length: random(4) }, () => jsonValue(random, depth - 1));
  return `[${space(random)}${items.join(`${space(random)},${space(random)}`)}${space(random)}]`;
}

function jsonObject(random: Random, depth: number): string {
  const members = Array.from(
    { length: random(5) },
    () =>
      `${space(random)}${jsonString(random)}${space(random)}:${space(random)}${jsonValue(random, depth)}${space(random)}`,
  );
  return `{${members.join(",")}${space(random)}}`;
}

test("an object has the members that the engine's parser finds, in exact form", () => {
  const random = createRandom(3);
  for (let round = 0; round < 3_000; round++) {
    const text = space(random) + jsonObject(random, 3) + space(random);
    const expected: Record<string, unknown> = JSON.parse(text);
    const members = parseJsonObject(text)?.members ?? {};
    const rounded = Object.entries(members).map(([key, value]) => [
      key,
      typeof value === "bigint" ? Number(value) : value,
    ]);
    const wanted = Object.entries(expected).map(([key, value]) => [key, value === 0 ? 0 : value]);
    expect([text, rounded]).toEqual([text, wanted]);
  }
});

test("text is an object exactly where the engine's parser says so, also with one character changed", () => {
  const random = createRandom(4);
  for (let round = 0; round < 5_000; round++) {
    const text = jsonObject(random, 2);
    const at = random(text.length + 1);
    const changed =
      text.slice(0, at) + pick(random, ["", '"', "}", "]", ",", "1", "\\"]) + text.slice(at + 1);
    let isObject = false;
    try {
      const value: unknown = JSON.parse(changed);
      isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    } catch {}
    expect([changed, parseJsonObject(changed) !== undefined]).toEqual([changed, isObject]);
  }
});
