/** Requests from the live OpenAPI document, good to hostile, each with its expected statuses. */
import fc, { type Arbitrary } from "fast-check";
import type { Document } from "../../documented-answers.ts";
import { type Body, bodyOf, worst } from "./body-generator.ts";
import { type Part, parameterValues, partOf, type Schema, weighted } from "./value-generator.ts";

/** `unknown`: well-formed, but never issued. */
export type TokenKind = "write" | "read" | "unknown" | "none";

export interface GeneratedRequest {
  /** The documented path and method; undefined for others. */
  readonly operation: { readonly path: string; readonly method: string } | undefined;
  readonly method: string;
  readonly target: string;
  readonly token: TokenKind;
  readonly headers: readonly string[];
  readonly body: string | undefined;
  readonly isChunked: boolean;
  /** Undefined: any status that is documented for the operation. */
  readonly expected: readonly number[] | undefined;
  /** What a create stores, as JSON, if its body is good. */
  readonly fields: Body["fields"];
}

interface Parameter {
  readonly name: string;
  readonly in: "query" | "path" | "header";
  readonly schema: Schema;
}

interface Operation {
  readonly path: string;
  readonly method: string;
  readonly needsToken: boolean;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | undefined;
  /** Takes a body on each line. */
  readonly isLines: boolean;
  readonly statuses: readonly number[];
}

/** Documented for invalid requests, so valid ones must not get them. */
const refusals = [400, 401, 403, 413, 415];
const bodyBytesMax = 64 * 1024;
const jsonLines = "application/jsonl";

export function requestsFor(document: Document): Arbitrary<GeneratedRequest> {
  const operations = readOperations(document);
  return weighted(
    // Operations without a token have little to vary, and long responses.
    ...operations.map(
      (operation) => [operation.needsToken ? 30 : 1, requestsOf(operation)] as const,
    ),
    [4, straysOf(operations)],
  );
}

function readOperations(document: Document): Operation[] {
  const resolve = (part: { $ref?: string }) =>
    (part.$ref?.slice(2).split("/") ?? []).reduce((at, key) => at[key], document) as Document;
  const deref = (part: { $ref?: string }) => (part.$ref ? resolve(part) : part);
  /** Of one line, where the body has many. */
  const bodySchemaOf = (content?: Document) => {
    if (!content) return undefined;
    const json = content["application/json"];
    return json ? deref(json.schema) : deref(deref(content[jsonLines].schema).contentSchema.items);
  };
  // HEAD is sent in place of GET.
  return Object.entries<Document>(document.paths).flatMap(([path, { head: _, ...methods }]) =>
    Object.entries<Document>(methods).map(([method, described]) => ({
      path,
      method,
      needsToken: (described.security ?? document.security).length > 0,
      parameters: (described.parameters ?? []).map(deref),
      body: bodySchemaOf(described.requestBody?.content),
      isLines: described.requestBody?.content[jsonLines] !== undefined,
      statuses: Object.keys(described.responses).map(Number),
    })),
  );
}

const tokenKinds: Arbitrary<TokenKind> = weighted(
  [20, fc.constant("write" as const)],
  [2, fc.constantFrom<TokenKind>("read", "unknown", "none")],
);

interface NamedPart extends Part {
  readonly name: string;
}

function requestsOf(operation: Operation): Arbitrary<GeneratedRequest> {
  const { path, method, parameters } = operation;
  const namedParts = (place: Parameter["in"], except = "") => {
    const declared = parameters.filter(({ name, in: in_ }) => in_ === place && name !== except);
    const parts = declared.map(({ name, schema }) =>
      partOf(parameterValues(schema)).map((part): NamedPart => ({ name, ...part })),
    );
    return fc.tuple(...(place === "path" ? parts : parts.map((part) => fc.option(part))));
  };
  return fc
    .record({
      token: tokenKinds,
      isHead: method === "get" ? fc.boolean() : fc.constant(false),
      path: namedParts("path"),
      query: namedParts("query"),
      strayQuery: rarely(strayQuery),
      headers: namedParts("header", requestIdHeader),
      requestId: fc.option(requestIds),
      neutral: fc.array(neutralHeader, { maxLength: 3 }),
      body: bodyFor(operation),
      contentType: operation.body && !operation.isLines ? contentTypes : fc.constant(jsonType),
      isChunked: fc.boolean(),
      isSpelled: fc.boolean(),
    })
    .map((made) => {
      const query = [...made.query, made.strayQuery].filter((part) => part !== null);
      const headers = made.headers.filter((part) => part !== null);
      const pathText = made.path.reduce(
        (text, part) => text.replace(`{${part?.name}}`, inPath(part?.text ?? "")),
        path,
      );
      const parts = [...made.path, ...query, ...headers, made.body].filter((part) => part !== null);
      const contentTypeLines = operation.isLines
        ? [`Content-Type: ${jsonLines}`]
        : made.contentType.lines;
      const queryText = query.map(({ name, text }) => `${name}=${spell(text, made.isSpelled)}`);
      return {
        operation: { path, method },
        method: made.isHead ? "HEAD" : method.toUpperCase(),
        target: queryText.length > 0 ? `${pathText}?${queryText.join("&")}` : pathText,
        token: made.token,
        headers: [
          ...headers.map(({ name, text }) => `${name}: ${inHeader(text)}`),
          ...(made.requestId === null ? [] : [`${requestIdHeader}: ${made.requestId}`]),
          ...(made.body === null ? [] : contentTypeLines),
          ...made.neutral,
        ],
        body: made.body?.text,
        isChunked: made.isChunked,
        expected: expectedOf(operation, { ...made, parts }),
        fields: made.body?.fields,
      };
    });
}

function expectedOf(
  { method, needsToken, body: takesBody, isLines, statuses }: Operation,
  made: {
    readonly token: TokenKind;
    readonly contentType: ContentType;
    readonly body: Body | null;
    readonly parts: readonly Part[];
  },
): readonly number[] | undefined {
  const { token, contentType, body, parts } = made;
  if (needsToken && (token === "none" || token === "unknown")) return [401];
  if (needsToken && token === "read" && method !== "get") return [403];
  // An empty body may be refused for either reason.
  if (takesBody && !contentType.isGood) return body?.text === "" ? [400, 415] : [415];
  if (takesBody && !isLines && Buffer.byteLength(body?.text ?? "") > bodyBytesMax) return [413];
  const verdict = worst(parts.map((part) => part.verdict));
  if (verdict === "bad") return [400];
  // The document can't say that the id in the body must be the one in the path.
  const mayDiffer = method === "put" && body?.fields?.id !== undefined;
  if (verdict === "open" || mayDiffer) return undefined;
  return statuses.filter((status) => status < 500 && !refusals.includes(status));
}

function rarely<Value>(arbitrary: Arbitrary<Value>): Arbitrary<Value | null> {
  return weighted([20, fc.constant(null)], [1, arbitrary as Arbitrary<Value | null>]);
}

/** Percent-encoded where necessary, or everywhere. */
function spell(text: string, isEncoded: boolean): string {
  if (!isEncoded) return encodeURIComponent(text);
  return Buffer.from(text).reduce(
    (all, byte) => `${all}%${byte.toString(16).padStart(2, "0")}`,
    "",
  );
}

/** Dots would lead to the parent path, and an empty part to another one. */
function inPath(text: string): string {
  return /^\.*$/.test(text) ? "x" : encodeURIComponent(text);
}

/** A header is one line of single bytes. */
function inHeader(text: string): string {
  return text.replace(/[^ -~\xa0-\xff]/g, "?");
}

const strayQuery: Arbitrary<NamedPart> = fc
  .constantFrom("x", "limit[]", "__proto__", "LIMIT", "%00", "access_token", "")
  .map((name) => ({ name, text: "1", verdict: name === "" ? "open" : "bad" }));

const requestIdHeader = "X-Request-Id";
const requestIds = fc.oneof(
  fc.string({ unit: fc.constantFrom(..."azAZ09._-"), minLength: 1, maxLength: 129 }),
  fc.constantFrom("", "a b", "\xff", "'; DROP TABLE plants; --", "$(reboot)", "x".repeat(500)),
);

const neutralHeader = fc.oneof(
  fc.constantFrom(
    "Accept: text/html",
    "Accept: application/xml;q=0",
    "Accept-Encoding: gzip, br",
    "Origin: null",
    "Origin: https://evil.example",
    "Range: bytes=0-0",
    "Cookie: token=x",
    "X-HTTP-Method-Override: DELETE",
    "X-Forwarded-For: 127.0.0.1",
    "X-Original-URL: /metrics",
    "Forwarded: for=unknown;host=x",
    "Prefer: respond-async",
    "Content-Language: \xff",
  ),
  fc
    .string({
      unit: fc.constantFrom(..."aZ9 !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\xa0\xe9\xff"),
      maxLength: 80,
    })
    .map((text) => `X-Any: ${text}`),
);

interface ContentType {
  readonly lines: readonly string[];
  readonly isGood: boolean;
}

const jsonType: ContentType = { lines: ["Content-Type: application/json"], isGood: true };
const contentTypes = weighted(
  [30, fc.constant(jsonType)],
  [
    3,
    fc.constantFrom<ContentType>(
      { lines: ['content-type: APPLICATION/JSON; charset="UTF-8"'], isGood: true },
      { lines: ["Content-Type: application/json", "Content-Encoding: identity"], isGood: true },
      { lines: [], isGood: false },
      { lines: ["Content-Type: text/plain"], isGood: false },
      { lines: ["Content-Type: application/json;charset=latin1"], isGood: false },
      { lines: ["Content-Type: application/json, application/json"], isGood: false },
      { lines: ["Content-Type: application/json", "Content-Encoding: gzip"], isGood: false },
    ),
  ],
);

const unwanted: Body = { text: "{}", verdict: "bad" };

function bodyFor({ body, isLines }: Operation): Arbitrary<Body | null> {
  if (!body) return rarely(fc.constant(unwanted));
  if (!isLines) return sizedBodyOf(body);
  // Lines that are wrong get a result of their own.
  return fc
    .array(bodyOf(body), { maxLength: 6 })
    .map((lines) => ({ text: lines.map(({ text }) => text).join("\n"), verdict: "good" }));
}

/** Sometimes padded with white space to the limit, or over it. */
function sizedBodyOf(schema: Schema): Arbitrary<Body> {
  const bodies = bodyOf(schema);
  const padded = fc
    .tuple(bodies, fc.constantFrom(bodyBytesMax, bodyBytesMax + 1))
    .map(([body, bytes]) => ({
      ...body,
      text: body.text + " ".repeat(Math.max(0, bytes - Buffer.byteLength(body.text))),
    }));
  return weighted([200, bodies], [1, padded]);
}

/** Unknown paths, and methods that a path does not support. */
function straysOf(operations: readonly Operation[]): Arbitrary<GeneratedRequest> {
  const base = { operation: undefined, body: undefined, isChunked: false, fields: undefined };
  const onNoPath = fc.record({
    method: fc.constantFrom("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "TRACE"),
    target: fc
      .string({ unit: "binary", maxLength: 60 })
      .map((text) => `/x${encodeURIComponent(text)}`),
    token: tokenKinds,
    headers: fc.array(neutralHeader, { maxLength: 3 }),
    expected: fc.constant([404]),
  });
  const onKnownPath = fc.record({
    method: fc.constantFrom("PATCH", "TRACE", "PROPFIND", "QUERY"),
    target: fc.constantFrom(...operations.map(({ path }) => path.replace(/\{\w+\}/, "1"))),
    token: tokenKinds,
    headers: fc.array(neutralHeader, { maxLength: 3 }),
    expected: fc.constant([405]),
  });
  return fc.oneof(onNoPath, onKnownPath).map((made) => ({ ...base, ...made }));
}
