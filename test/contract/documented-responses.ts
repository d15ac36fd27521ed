/** Checks values and responses against an OpenAPI document. */
import { expect } from "bun:test";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: the document is walked as the JSON that it is.
export type Document = any;

interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The data of the events that a stream has had so far. */
function readEvents(text: string): unknown[] {
  return Array.from(text.matchAll(/^data: ?(.*)\n/gm), ([, data = ""]) => JSON.parse(data));
}

export class ApiDocument {
  readonly #ajv = addFormats(new Ajv({ strict: false, allErrors: true }));
  readonly document: Document;

  constructor(document: object) {
    // A schema that is validated on its own finds the others by the name of the document.
    this.document = JSON.parse(JSON.stringify(document).replaceAll('"#/', '"document#/'));
    this.#ajv.addSchema(this.document, "document");
  }

  /** Fails unless the response is as documented. Other paths and methods may send anything. */
  check(method: string, path: string, sent: string | undefined, received: Received): void {
    const { status, headers, text } = received;
    const { paths } = this.document;
    const methods = paths[path] ?? paths[path.replace(/[^/]+$/, "{id}")];
    const operation = methods?.[method.toLowerCase()];
    if (!operation) return;
    expect(Object.keys(operation.responses)).toContain(String(status));
    const described = this.#resolve(operation.responses[status]);
    const accepted = operation.requestBody?.content["application/json"]?.schema;
    if (status < 300 && accepted && sent !== undefined) this.validate(accepted, JSON.parse(sent));
    for (const [name, header] of Object.entries(described.headers ?? {})) {
      const { required = false, schema } = this.#resolve(header);
      const value = headers.get(name);
      if (value === null) expect({ name, required }).toEqual({ name, required: false });
      else if (schema) this.validate(schema, schema.type === "integer" ? Number(value) : value);
    }
    const type = headers.get("Content-Type");
    if (!described.content) expect([text, type]).toEqual(["", null]);
    if (!described.content) return;
    expect(Object.keys(described.content)).toContain(type ?? "none");
    const { schema } = described.content[type ?? ""];
    this.validate(schema, type === "text/event-stream" ? readEvents(text) : JSON.parse(text));
  }

  /** Fails unless the value fits a schema of the document. */
  validate(schema: object, value: unknown): void {
    const validate = this.#ajv.compile(schema);
    validate(value);
    expect(validate.errors ?? []).toEqual([]);
  }

  #resolve(part: Document): Document {
    const [, ...keys]: string[] = part.$ref?.split("/") ?? [];
    return keys.length === 0 ? part : keys.reduce((at, key) => at[key], this.document);
  }
}
