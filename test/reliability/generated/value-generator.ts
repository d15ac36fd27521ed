/** Values from a JSON Schema: those that it allows, forbids, or says nothing about. */
import fc, { type Arbitrary } from "fast-check";

/** `good`: the schema allows it. `bad`: it forbids it. `open`: it does not say. */
export type Verdict = "good" | "bad" | "open";

export interface Part {
  readonly text: string;
  readonly verdict: Verdict;
}

export type Values = Readonly<Record<Verdict, Arbitrary<string>>>;

export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly items?: { readonly enum?: readonly string[] };
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** One of these, with a probability in proportion to its weight. */
export function weighted<Value>(
  ...choices: readonly (readonly [weight: number, values: Arbitrary<Value>])[]
): Arbitrary<Value> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/** Mostly good, so that requests get far. */
export function partOf({ good, bad, open }: Values): Arbitrary<Part> {
  const as = (verdict: Verdict, texts: Arbitrary<string>) =>
    texts.map((text): Part => ({ text, verdict }));
  return weighted([30, as("good", good)], [2, as("bad", bad)], [1, as("open", open)]);
}

/** Code points of every kind that tends to break programs. */
const character = fc.constantFrom(
  ..."aZ9 '\"\\/<>&%{}[]+-_~\t\n\r\x01\x1f\x7f\u0085\u00a0éßİıſ中ع\u0301\u200b\u200d\u202e\u2028\ufeff\ufffd\uffff🌿𝕏\u{10ffff}",
);
/** What a schema says nothing about. */
const oddText = fc.oneof(
  fc.constantFrom("", " ", "\u3000", "\ufeff", "\0", "a\0b", "\ud800", "a\udc00b", "__proto__"),
  fc.string({ unit: "binary", maxLength: 40 }),
);
const integerEdges = [2n ** 31n, 2n ** 32n, 2n ** 52n, 2n ** 53n, 2n ** 63n].flatMap((edge) =>
  [-1n, 0n, 1n, 2n].flatMap((step) => [edge + step, -edge + step]),
);

const nonsense = [
  "null",
  "true",
  "[]",
  "{}",
  '[{"a":[null]}]',
  '{"__proto__":1}',
  "1.5",
  "-1e-7",
] as const;

/** As JSON. */
export function jsonValues(schema: Schema): Values {
  if (schema.type === "string") return stringValues(schema);
  if (schema.type === "integer") return integerValues(schema);
  throw new Error(`No values for a schema of type ${schema.type}.`);
}

/** Texts that a schema allows, and those that are too long or too short. */
function textsOf({ minLength = 0, maxLength = 1_000 }: Schema): Pick<Values, "good" | "bad"> {
  const ofLength = (min: number, max: number) =>
    fc.string({
      unit: character,
      minLength: Math.max(0, min - 1),
      maxLength: Math.max(0, max - 1),
    });
  const good = weighted(
    [8, ofLength(minLength, Math.min(maxLength, 24)).map((rest) => `F${rest}`)],
    [4, fc.constantFrom("Fern", "Moss", "Ivy")],
    [1, fc.constantFrom("🌿".repeat(maxLength), "x".repeat(maxLength))],
  );
  const tooLong = fc.constantFrom("🌿".repeat(maxLength + 1), "x".repeat(3 * maxLength));
  const tooShort = fc.constant("x".repeat(Math.max(0, minLength - 1)));
  return { good, bad: minLength > 0 ? fc.oneof(tooLong, tooShort) : tooLong };
}

function stringValues(schema: Schema): Values {
  const { good, bad } = textsOf(schema);
  return {
    good: quoted(good),
    bad: fc.oneof(fc.constantFrom(...nonsense, "7"), quoted(bad)),
    open: quoted(oddText),
  };
}

/** With or without escapes. */
function quoted(texts: Arbitrary<string>): Arbitrary<string> {
  return fc.tuple(texts, fc.boolean()).map(([text, isEscaped]) => {
    const json = JSON.stringify(text);
    if (!isEscaped) return json;
    return json.replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  });
}

function rangeOf({ format, minimum, maximum }: Schema): [min: bigint, max: bigint] {
  const bits = format === "int64" ? 63n : 31n;
  return [BigInt(minimum ?? -(2n ** bits)), BigInt(maximum ?? 2n ** bits - 1n)];
}

/** A few small ones, so that requests conflict; the limits; and any. */
function integersOf(schema: Schema): Readonly<Record<"good" | "bad", Arbitrary<bigint>>> {
  const [min, max] = rangeOf(schema);
  const isIn = (value: bigint) => value >= min && value <= max;
  return {
    good: weighted(
      [6, fc.bigInt({ min: 1n, max: 40n })],
      [3, fc.constantFrom(...[0n, ...integerEdges].filter(isIn))],
      [1, fc.bigInt({ min, max })],
    ),
    bad: fc.constantFrom(
      ...[...integerEdges, min - 1n, max + 1n, 10n ** 30n].filter((value) => !isIn(value)),
    ),
  };
}

function integerValues(schema: Schema): Values {
  const { good, bad } = integersOf(schema);
  return {
    good: weighted(
      [8, good.map(String)],
      [1, good.map((value) => `${value}.0`)],
      [1, good.map((value) => `${value}e0`)],
    ),
    bad: fc.oneof(
      bad.map(String),
      fc.constantFrom(...nonsense, '"7"', '""', "1e400", "9007199254740993.5", "1e-1"),
    ),
    open: fc.constantFrom("-0", "0e9", "1e18", "1e19", "10e-1", `1${"0".repeat(300)}`),
  };
}

/** As the text of a parameter. */
export function parameterValues(schema: Schema): Values {
  const open = oddText.map((text) => text.toWellFormed());
  if (schema.type === "integer") {
    const { good, bad } = integersOf(schema);
    const odd = ["", "+1", "007", "1.0", "1e3", "0x1", " 1", "1 ", "-", "-0", "١", "1,2", "x"];
    return {
      good: good.map(String),
      bad: fc.oneof(bad.map(String), fc.constantFrom(...odd)),
      open,
    };
  }
  if (schema.type === "array") {
    const names = schema.items?.enum ?? [];
    const join = (list: readonly string[]) => list.join(",");
    return {
      good: fc.shuffledSubarray([...names], { minLength: 1 }).map(join),
      bad: fc.constantFrom("", ",", "x", "x,x", join([...names, ...names]), `${join(names)},`),
      open,
    };
  }
  if (schema.enum) {
    return { good: fc.constantFrom(...schema.enum), bad: fc.constantFrom("x", '"x"', ""), open };
  }
  if (schema.pattern?.includes("W/")) {
    return {
      good: fc.constantFrom("*", '"x"', 'W/"x"', '"x", "y"'),
      bad: fc.constantFrom("x", '"x', "*, *", '"x" "y"', ""),
      open,
    };
  }
  if (schema.pattern === undefined) return { ...textsOf(schema), open };
  // A key: visible ASCII.
  const unit = fc.constantFrom(..."aZ09!#'()*,/:;<>?@[]~");
  const visible = fc.string({ unit, minLength: 1, maxLength: schema.maxLength ?? 1 });
  const few = fc.nat({ max: 300 }).map((number) => `few-${number}`);
  return {
    good: fc.oneof(visible, few),
    bad: fc.constantFrom("", "k".repeat((schema.maxLength ?? 0) + 1)),
    open,
  };
}
