/**
 * The plant: its fields, their limits and their types. Validation and the OpenAPI document both
 * read this one source; it knows nothing of HTTP or storage.
 */
import * as v from "valibot";

export type PlantId = bigint;

export const plantIdMin: PlantId = -(2n ** 63n);
export const plantIdMax: PlantId = 2n ** 63n - 1n;
/** The highest id that the service assigns. Ids above it that clients chose don't matter to it. */
export const assignedIdMax: PlantId = 2n ** 52n;

export const nameCodePointsMax = 200;
export const tagCodePointsMax = 100;

/** Counts code points only where the cheaper count of UTF-16 units cannot settle the question. */
function hasCodePointsAtMost(text: string, max: number): boolean {
  return text.length <= max || (text.length <= 2 * max && [...text].length <= max);
}

/** More than `trim` knows: U+0085 is white space in Unicode, U+FEFF in JavaScript. */
const onlySpace = /^[\p{White_Space}\uFEFF]*$/u;

interface TextRule {
  readonly codePointsMax: number;
  readonly mayBeBlank: boolean;
}

/** What is wrong with a text, if anything. */
function findTextError(text: string, rule: TextRule): string | undefined {
  if (!rule.mayBeBlank && text === "") return "must not be empty";
  if (!hasCodePointsAtMost(text, rule.codePointsMax)) {
    return `must have at most ${rule.codePointsMax} characters (Unicode code points)`;
  }
  if (!rule.mayBeBlank && onlySpace.test(text)) return "must not be only white space";
  if (!text.isWellFormed()) return "must not contain a lone surrogate";
  return text.includes("\0") ? "must not contain the character U+0000" : undefined;
}

/** One check for all rules of a text, in the order in which they are reported. */
export function fits(rule: TextRule) {
  return v.check<string, (issue: v.CheckIssue<string>) => string>(
    (text) => findTextError(text, rule) === undefined,
    (issue) => findTextError(issue.input, rule) ?? "must fit",
  );
}

const name = v.pipe(
  v.string("must be a string"),
  fits({ codePointsMax: nameCodePointsMax, mayBeBlank: false }),
  v.description(
    `1 to ${nameCodePointsMax} Unicode code points, not only white space, kept as sent.`,
  ),
  v.metadata({
    minLength: 1,
    maxLength: nameCodePointsMax,
    pattern: "^[^\\x00]*[^\\s\\x00\\x85][^\\x00]*$",
  }),
);

export const tagSchema = v.pipe(
  v.string("must be a string"),
  fits({ codePointsMax: tagCodePointsMax, mayBeBlank: true }),
  v.description(`0 to ${tagCodePointsMax} Unicode code points, kept as sent. Empty if left out.`),
  v.metadata({ maxLength: tagCodePointsMax, pattern: "^[^\\x00]*$" }),
);

export const plantIdSchema = v.pipe(
  v.bigint("must be an integer"),
  v.minValue(plantIdMin, `must not be less than ${plantIdMin}`),
  v.maxValue(plantIdMax, `must not be more than ${plantIdMax}`),
  v.description("Identifies the plant in its garden. Exact over the whole signed 64-bit range."),
);

/** What a client sends to create a plant. */
export const plantDraftSchema = v.object(
  {
    name,
    tag: v.optional(tagSchema, ""),
    id: v.optional(plantIdSchema),
  },
  (issue) => (issue.expected === "Object" ? "must be one JSON object" : "is required"),
);

/** A plant as a client sees it: with its id if the client asks for it. */
export const plantSchema = v.object({ id: v.optional(plantIdSchema), name, tag: tagSchema });

export type PlantDraft = v.InferOutput<typeof plantDraftSchema>;

export interface Plant {
  readonly id: PlantId;
  readonly name: string;
  readonly tag: string;
}

/** A hash of the plant's name and tag, as 22 characters of base64url. */
export function contentHash({ name, tag }: Pick<Plant, "name" | "tag">): string {
  return sha256(JSON.stringify([name, tag]), "base64url").slice(0, 22);
}

/** Not imported at the top: that would add 20 ms to every start. */
const loadHash = () => process.getBuiltinModule("node:crypto").hash;
let hash: ReturnType<typeof loadHash> | undefined;

export function sha256(text: string, encoding: "base64url" | "binary"): string {
  hash ??= loadHash();
  return hash("sha256", text, encoding);
}
