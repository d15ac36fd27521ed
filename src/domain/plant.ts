/**
 * The plant: its fields, their limits and their types. To add a field, add it to `contentFields`:
 * validation, OpenAPI, hashes and SQL follow, and the compiler finds the rest.
 */
import * as v from "valibot";

export type PlantId = bigint;

export const plantIdMin: PlantId = -(2n ** 63n);
export const plantIdMax: PlantId = 2n ** 63n - 1n;
/**
 * The highest id that the service assigns. Higher ids, which clients chose, don't affect the next
 * one.
 */
export const assignedIdMax: PlantId = 2n ** 52n;

/** The fields of a plant besides its id. All are text, and empty if they aren't sent. */
export const contentFields = ["name", "tag"] as const;

export type PlantContent = Readonly<Record<(typeof contentFields)[number], string>>;

export interface Plant extends PlantContent {
  readonly id: PlantId;
}

export const codePointsMax = { name: 200, tag: 100 } satisfies Record<keyof PlantContent, number>;
/** The most UTF-16 units that a plant's content has: two per code point. */
export const contentCharactersMax =
  2 * Object.values(codePointsMax).reduce((sum, max) => sum + max);

/** Counts code points only if the number of UTF-16 units, which is cheaper, doesn't settle it. */
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

/** For the OpenAPI document: not only white space. */
export const notBlankPattern = "^[^\\x00]*[^\\s\\x00\\x85][^\\x00]*$";

const name = v.pipe(
  v.string("must be a string"),
  fits({ codePointsMax: codePointsMax.name, mayBeBlank: false }),
  v.description(
    `1 to ${codePointsMax.name} Unicode code points, not only white space, kept as sent.`,
  ),
  v.metadata({
    minLength: 1,
    maxLength: codePointsMax.name,
    pattern: notBlankPattern,
  }),
);

export const tagSchema = v.pipe(
  v.string("must be a string"),
  fits({ codePointsMax: codePointsMax.tag, mayBeBlank: true }),
  v.description(`0 to ${codePointsMax.tag} Unicode code points, kept as sent. Empty if left out.`),
  v.metadata({ maxLength: codePointsMax.tag, pattern: "^[^\\x00]*$" }),
);

export const plantIdSchema = v.pipe(
  v.bigint("must be an integer"),
  v.minValue(plantIdMin, `must not be less than ${plantIdMin}`),
  v.maxValue(plantIdMax, `must not be more than ${plantIdMax}`),
  v.description("Identifies the plant in its garden. Exact over the whole signed 64-bit range."),
);

const contentSchemas = { name, tag: v.optional(tagSchema, "") } satisfies Record<
  keyof PlantContent,
  unknown
>;

const objectMessage = (issue: { readonly expected: string | null }) =>
  issue.expected === "Object" ? "must be one JSON object" : "is required";

/** What a client sends to create a plant. */
export const plantDraftSchema = v.object(
  { ...contentSchemas, id: v.optional(plantIdSchema) },
  objectMessage,
);

export type PlantDraft = v.InferOutput<typeof plantDraftSchema>;

const removableTag = v.pipe(
  tagSchema,
  v.description(`0 to ${codePointsMax.tag} Unicode code points, kept as sent. Null: empty.`),
);

const changedSchemas = { name: v.optional(name), tag: v.nullish(removableTag) } satisfies Record<
  keyof PlantContent,
  unknown
>;

/** What a client sends to change plants: the fields that change. `null` is an empty tag. */
export const plantChangeSchema = v.object(changedSchemas, objectMessage);

/** To change one plant. An id changes nothing: it's the one in the path. */
export const plantPatchSchema = v.object(
  { ...changedSchemas, id: v.optional(plantIdSchema) },
  objectMessage,
);

export type PlantChange = Partial<PlantContent>;

/** A plant as a client sees it: with its id if the client asks for it. */
export const plantSchema = v.object({ id: v.optional(plantIdSchema), ...contentSchemas });

// Field by field, here and below: a spread or a loop over their names takes several times as long.

export function contentOf({ name, tag }: PlantContent): PlantContent {
  return { name, tag };
}

/** The plant with this id, in the form that the caller needs. */
export function withId<Id>(
  id: Id,
  { name, tag }: PlantContent,
): PlantContent & { readonly id: Id } {
  return { id, name, tag };
}

/** One text for each field. A tuple that lacks one doesn't compile. */
export type ContentValues = TextPerField<typeof contentFields>;
type TextPerField<Fields> = { -readonly [Index in keyof Fields]: string };

export function isSameContent(one: PlantContent, other: PlantContent): boolean {
  return contentFields.every((field) => one[field] === other[field]);
}

/**
 * `PlantContent` if all fields are named, else `never`, so that code that forgets a field doesn't
 * compile.
 */
type Whole<Named extends keyof PlantContent> = [keyof PlantContent] extends [Named]
  ? PlantContent
  : never;

/** In UTF-16 units. */
export function countCharacters({ name, tag }: Whole<"name" | "tag">): number {
  return name.length + tag.length;
}

const addedFields = contentFields.slice(2);

/**
 * What hashes of a plant are made of. Never change it for a plant with a name and a tag: a retry
 * after an upgrade must get the same hash. So a later field counts only if it isn't empty.
 */
export function hashedContent(plant: PlantContent): unknown[] {
  const hashed: unknown[] = [plant.name, plant.tag];
  for (const field of addedFields) if (plant[field] !== "") hashed.push([field, plant[field]]);
  return hashed;
}

/** A hash of the plant's content, as 22 characters of base64url. */
export function contentHash(plant: PlantContent): string {
  return sha256(JSON.stringify(hashedContent(plant)), "base64url").slice(0, 22);
}

/** Of some contents, or of any. */
export type ContentHashes = "*" | readonly string[];

/** Whether the plant exists and has one of these contents. */
export function hasOneOf(hashes: ContentHashes, found: PlantContent | undefined): boolean {
  if (!found) return false;
  return hashes === "*" || hashes.includes(contentHash(found));
}

/** Not imported at the top: that would add 20 ms to every start. */
const loadHash = () => process.getBuiltinModule("node:crypto").hash;
let hash: ReturnType<typeof loadHash> | undefined;

export function sha256(text: string, encoding: "base64url" | "binary"): string {
  hash ??= loadHash();
  return hash("sha256", text, encoding);
}
