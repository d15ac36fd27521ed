/** Bodies from the schema of an object: valid, invalid, and hardly JSON. */
import fc, { type Arbitrary } from "fast-check";
import {
  jsonValues,
  type Part,
  partOf,
  type Schema,
  type Verdict,
  weighted,
} from "./value-generator.ts";

export interface Body extends Part {
  /** The fields as JSON, if the body is good. */
  readonly fields?: Readonly<Record<string, string>>;
}

interface Member {
  readonly name: string;
  readonly value: Part;
}

export function bodyOf(schema: Schema): Arbitrary<Body> {
  const whole = membersOf(schema).map(render);
  const wholeText = whole.map(({ text }) => text);
  const bad = (texts: Arbitrary<string>) => texts.map((text): Body => ({ text, verdict: "bad" }));
  const open = (texts: Arbitrary<string>) => texts.map((text): Body => ({ text, verdict: "open" }));
  return weighted(
    [40, whole],
    [2, bad(withMember(whole, fc.constantFrom(...strangeMembers)))],
    [1, bad(twice(whole))],
    [1, bad(cutOff(wholeText))],
    [1, bad(fc.constantFrom(...notObjects))],
    [1, bad(deep)],
    [3, open(edited(wholeText))],
    [1, open(fc.json({ maxDepth: 3 }))],
  );
}

/** Required fields mostly, others sometimes, in any order. */
function membersOf({ properties = {}, required = [] }: Schema): Arbitrary<Member[]> {
  const members = Object.entries(properties).map(([name, schema]) => {
    const member = partOf(jsonValues(schema)).map((value): Member => ({ name, value }));
    if (!required.includes(name)) return fc.option(member, { nil: undefined });
    const missing: Member = { name, value: { text: "", verdict: "bad" } };
    return weighted([40, member], [1, fc.constant(missing)]);
  });
  return fc.tuple(fc.tuple(...members), fc.boolean()).map(([found, isReversed]) => {
    const there = found.filter((member) => member !== undefined);
    return isReversed ? there.reverse() : there;
  });
}

function render(members: readonly Member[]): Body {
  const there = members.filter(({ value }) => value.text !== "");
  const fields = Object.fromEntries(there.map(({ name, value }) => [name, value.text]));
  const verdict = worst(members.map(({ value }) => value.verdict));
  const text = `{${there.map(({ name, value }) => `"${name}":${value.text}`).join(",")}}`;
  return verdict === "good" ? { text, verdict, fields } : { text, verdict };
}

export function worst(verdicts: readonly Verdict[]): Verdict {
  if (verdicts.includes("bad")) return "bad";
  return verdicts.includes("open") ? "open" : "good";
}

const strangeMembers = [
  '"x":1',
  '"__proto__":{}',
  '"constructor":null',
  '"":""',
  '"toString":1',
  '"Name":"Fern"',
  '"name ":"Fern"',
  `"${"x".repeat(2_000)}":1`,
  '"\\u0000":0',
  '"a~/b":1',
];

function withMember(bodies: Arbitrary<Body>, members: Arbitrary<string>): Arbitrary<string> {
  return fc
    .tuple(bodies, members)
    .map(([{ text }, member]) =>
      text === "{}" ? `{${member}}` : `${text.slice(0, -1)},${member}}`,
    );
}

function twice(bodies: Arbitrary<Body>): Arbitrary<string> {
  return bodies.map(({ text }) =>
    text === "{}" ? '{"name":"a","name":"b"}' : `${text.slice(0, -1)},${text.slice(1)}`,
  );
}

function cutOff(texts: Arbitrary<string>): Arbitrary<string> {
  return fc
    .tuple(texts, fc.double({ min: 0, max: 0.99, noNaN: true }))
    .map(([text, share]) => text.slice(0, Math.floor(text.length * share)));
}

const notObjects = [
  "",
  " ",
  "[]",
  "null",
  "0",
  '"{}"',
  "{}{}",
  "{,}",
  "{'name':'Fern'}",
  '{name:"Fern"}',
  '{"name":"Fern",}',
  '{"name":"Fern"}\u0000',
  "\ufeff{}",
  "NaN",
  "// {}",
  '{"name":"a\nb"}',
  '{"name":"\\x41"}',
  '{"name":"Fern","id":01}',
  '{"name":"Fern","id":+1}',
  '{"name":"Fern","id":0x1}',
  '{"name":"Fern","id":1n}',
];

const deep = fc
  .tuple(fc.constantFrom("[", '{"name":'), fc.integer({ min: 2, max: 3_000 }), fc.boolean())
  .map(([opening, depth, isClosed]) => {
    const closing = opening === "[" ? "]" : "}";
    return opening.repeat(depth) + (isClosed ? `1${closing.repeat(depth)}` : "");
  });

/** With a character inserted, removed or replaced. */
function edited(texts: Arbitrary<string>): Arbitrary<string> {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const put = fc.constantFrom(..."\0\x01 \t,:\"'\\{}[]09-+.eé🌿\ufeff", "\\u0000", "\\ud800", "");
  return fc.tuple(texts, share, put, fc.nat({ max: 2 })).map(([text, where, with_, removed]) => {
    const at = Math.floor(text.length * where);
    return text.slice(0, at) + with_ + text.slice(at + removed);
  });
}
