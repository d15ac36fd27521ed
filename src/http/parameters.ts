/** What a parameter is, and how its text is parsed: integers, fixed words, keys, entity tags. */
import * as v from "valibot";
import {
  type ContentHashes,
  codePointsMax,
  fits,
  notBlankPattern,
  tagSchema,
} from "../domain/plant.ts";
import { searchCodePointsMax, wordsOf } from "../domain/search.ts";

/** Parses the text of a parameter; its metadata has the JSON Schema for the OpenAPI document. */
type TextSchema<Value = unknown> = v.GenericSchema<string, Value>;

export interface Parameter<Value = unknown> {
  readonly in: "query" | "path" | "header";
  readonly schema: TextSchema<Value>;
  readonly description: string;
  readonly example?: unknown;
}

export type Parameters = Readonly<Record<string, Parameter>>;

/** The parameters that an operation declares, by where they are sent. */
export const inQuery = declareIn("query");
export const inPath = declareIn("path");
export const inHeader = declareIn("header");

function declareIn<const Source extends Parameter["in"]>(source: Source) {
  return <Schema extends TextSchema>(schema: Schema, description: string, example: unknown) => ({
    in: source,
    schema,
    description,
    example,
  });
}

const canonicalInteger = /^(?:0|-?[1-9]\d{0,18})$/;

/** A canonical decimal integer: no plus sign, no leading zeros, no fraction. */
export function integerText(min: bigint, max: bigint) {
  const message = `must be a decimal integer from ${min} to ${max}, in its shortest form`;
  const format = max < 2n ** 31n ? "int32" : "int64";
  // The limits of 64 bits can't be written as numbers; the format says them.
  const bounds = min < 0n ? {} : { minimum: Number(min), maximum: Number(max) };
  return v.pipe(
    v.string(),
    v.check((text) => canonicalInteger.test(text), message),
    v.transform((text) => BigInt(text)),
    v.check((value) => value >= min && value <= max, message),
    v.metadata({ jsonSchema: { type: "integer", format, ...bounds } }),
  );
}

/** Of every list of items that a client pages through. */
export const limit = inQuery(
  v.pipe(integerText(0n, 2_147_483_647n), v.transform(Number)),
  "The maximum number of items to return. Default: all. Up to 1,000 are a page.",
  20,
);

/** One of some fixed words. */
export function wordText<const Word extends string>(...words: readonly Word[]) {
  return v.pipe(
    v.string(),
    v.picklist(words, `must be ${words.join(" or ")}`),
    v.metadata({ jsonSchema: { type: "string", enum: words } }),
  );
}

export const tagText = v.pipe(
  tagSchema,
  v.metadata({
    jsonSchema: { type: "string", maxLength: codePointsMax.tag, pattern: "^[^\\x00]*$" },
  }),
);

export const searchText = v.pipe(
  v.string(),
  fits({ codePointsMax: searchCodePointsMax, mayBeBlank: false }),
  v.check((search) => wordsOf(search).length > 0, "must have a word that isn't accents only"),
  v.metadata({
    jsonSchema: {
      type: "string",
      minLength: 1,
      maxLength: searchCodePointsMax,
      pattern: notBlankPattern,
    },
  }),
);

/** For response headers. The pattern is what this service sends. */
export const entityTagHeader = {
  description: "Identifies this version of the content.",
  example: '"8Zk2qW0aJr9yTn4uVb6xCd"',
  pattern: '^"[A-Za-z0-9_-]{22}"$',
  required: true,
};

const entityTag = '(?:W/)?"[!#-~\\x80-\\xff]*"';
const entityTagsNeeded = 'must be * or a list of entity tags, such as "6nXa"';
/** Recipients ignore empty elements of a list (RFC 9110, 5.6.1.2). */
const entityTags = new RegExp(`^[\\s,]*${entityTag}(?:\\s*,[\\s,]*${entityTag})*[\\s,]*$`);

/** `*`, or the entity tags of a precondition (RFC 9110), as the contents that they stand for. */
function entityTagsText(comparison: "strong" | "weak") {
  return v.pipe(
    v.string(),
    v.check((text) => text === "*" || entityTags.test(text), entityTagsNeeded),
    v.transform((text): ContentHashes => (text === "*" ? text : toContentHashes(text, comparison))),
    v.metadata({
      jsonSchema: { type: "string", pattern: '^(\\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$' },
    }),
  );
}

/** A weak tag matches only by weak comparison (RFC 9110, 8.8.3.2). */
function toContentHashes(text: string, comparison: "strong" | "weak"): string[] {
  const tags = text.match(new RegExp(entityTag, "g")) ?? [];
  const counting = comparison === "weak" ? tags : tags.filter((tag) => !tag.startsWith("W/"));
  return counting.map((tag) => tag.slice(tag.indexOf('"') + 1, -1));
}

export const ifMatch = inHeader(
  entityTagsText("strong"),
  "Entity tags, or `*`: only if the plant exists and has one of them.",
  entityTagHeader.example,
);

const declareIfNoneMatch = (description: string) =>
  inHeader(entityTagsText("weak"), description, entityTagHeader.example);

/** Of a read. */
export const ifNoneMatch = declareIfNoneMatch(
  "Entity tags, or `*`. If the plant has one of them, the response is 304.",
);

/** Of a write. */
export const ifNoneMatchToWrite = declareIfNoneMatch(
  "Entity tags, or `*`: only if the plant doesn't exist, or has none of them.",
);

/**
 * An idempotency key, bare or as a quoted string of structured fields (RFC 9651), which may have
 * spaces: the same key.
 */
export function keyText(charactersMax: number) {
  const bare = `[!#-~][!-~]{0,${charactersMax - 1}}`;
  const quoted = `"([ !#-\\[\\]-~]|\\\\["\\\\]){1,${charactersMax}}"`;
  const pattern = `^(${bare}|${quoted})$`;
  const key = new RegExp(pattern);
  return v.pipe(
    v.string(),
    v.check(
      (text) => key.test(text),
      `must be 1 to ${charactersMax} visible ASCII characters, bare or in double quotes`,
    ),
    v.transform(unquote),
    v.metadata({ jsonSchema: { type: "string", pattern } }),
  );
}

function unquote(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replace(/\\(["\\])/g, "$1") : text;
}
