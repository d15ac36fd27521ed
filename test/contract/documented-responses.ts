/** Checks responses against an OpenAPI document: their status, their headers and their bodies. */
import Ajv, { type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: the document is walked as the JSON that it is.
export type Document = any;

interface GivenAnswer {
  readonly status: number;
  /** Absent if there is no such header. */
  header(name: string): string | undefined;
  readonly text: string;
}

interface Described {
  readonly headers?: Record<
    string,
    { required?: boolean; schema?: { type: string }; $ref?: string }
  >;
  readonly content?: Record<string, { schema: object }>;
  readonly $ref?: string;
}

/** Wherever the service sends one of these, it is documented. */
const sharedHeaders = ["X-Request-Id", "RateLimit", "RateLimit-Policy"];

export class DocumentedAnswers {
  readonly #document: Document;
  readonly #ajv = addFormats(new Ajv({ strict: false, allErrors: true }));
  /** Fixed paths first: `/plants/bulk` fits `/plants/{id}`, too. */
  readonly #paths: readonly (readonly [path: string, pattern: RegExp])[];
  readonly #compiled = new Map<object, ValidateFunction>();

  constructor(document: Document) {
    this.#document = document;
    this.#ajv.addSchema(document, "document");
    this.#paths = Object.keys(document.paths)
      .toSorted((a, b) => Number(a.includes("{")) - Number(b.includes("{")))
      .map((path) => [path, new RegExp(`^${path.replace(/\{\w+\}/, "[^/]+")}$`)] as const);
  }

  /** What is wrong with a response; absent if nothing is, or there is no such operation. */
  findFault(
    verb: string,
    target: string,
    sent: string | undefined,
    answer: GivenAnswer,
  ): string | undefined {
    const path = this.#paths.find(([, pattern]) => pattern.test(target))?.[0] ?? "";
    const method = verb.toLowerCase();
    const operation = this.#document.paths[path]?.[method];
    if (!operation) return undefined;
    const described: Described | undefined = operation.responses[String(answer.status)];
    if (!described) return `${method} ${path} ${answer.status} is not documented`;
    const body = operation.requestBody?.content["application/json"]?.schema;
    const isAccepted = answer.status < 300 && body !== undefined && sent !== undefined;
    const mismatch = isAccepted ? this.findMismatch(body, parse(sent)) : undefined;
    if (mismatch) return `what was accepted does not fit the schema: ${mismatch}`;
    const { headers = {}, content } = this.resolve(described);
    for (const [name, header] of Object.entries(headers)) {
      const { required, schema } = this.resolve(header);
      const text = answer.header(name);
      if (required && text === undefined) return `the header ${name} is missing`;
      if (text === undefined || !schema) continue;
      const value = schema.type === "integer" ? Number(text) : text;
      const mismatch = this.findMismatch(schema, value);
      if (mismatch) return `the header ${name} is ${text}: ${mismatch}`;
    }
    for (const name of sharedHeaders) {
      const isUnknown = answer.header(name) !== undefined && !(name in headers);
      if (isUnknown) return `${path} ${answer.status} does not document the header ${name}`;
    }
    const type = answer.header("content-type");
    if (!content) {
      const isEmpty = answer.text === "" && (type === undefined || method === "head");
      return isEmpty ? undefined : `${answer.status} has a body: ${type} ${answer.text}`;
    }
    // The document describes the stream of events in words.
    if (type === "text/event-stream") return undefined;
    const media = content[type ?? ""];
    if (!media) return `${path} answers ${answer.status} with ${type}`;
    const value = type?.includes("json") ? parse(answer.text) : answer.text;
    return this.findMismatch(media.schema, value);
  }

  /** Why a value does not fit a schema of the document; absent if it does. */
  findMismatch(schema: object, value: unknown): string | undefined {
    const check = this.#compiled.get(schema) ?? this.#compile(schema);
    return check(value) ? undefined : this.#ajv.errorsText(check.errors);
  }

  resolve<Part extends { $ref?: string }>(part: Part): Part {
    if (part.$ref === undefined) return part;
    const keys = part.$ref.slice(2).split("/");
    return keys.reduce((at, key) => at[key], this.#document);
  }

  #compile(schema: object): ValidateFunction {
    const resolved = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/'));
    const check = this.#ajv.compile(resolved);
    this.#compiled.set(schema, check);
    return check;
  }
}

/** Text that is not JSON fits no schema. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
