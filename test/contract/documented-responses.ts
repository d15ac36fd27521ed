/** Checks values and responses against an OpenAPI document. */
import { expect } from "bun:test";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: the document is walked as the JSON that it is.
export type Document = any;

/** A response that was read to its end. */
interface ReadResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The data of the server-sent events in a text. */
function readEvents(text: string): unknown[] {
  return Array.from(text.matchAll(/^data: ?(.*)\n/gm), ([, data = ""]) => JSON.parse(data));
}

export class ApiDocument {
  readonly #ajv = addFormats(new Ajv({ strict: false, allErrors: true }));
  /** Its references, such as `document#/components/…`, start with the name it has for Ajv. */
  readonly document: Document;

  constructor(document: object) {
    // A schema that is validated on its own finds the others by the name of the document.
    this.document = JSON.parse(JSON.stringify(document).replaceAll('"#/', '"document#/'));
    this.#ajv.addSchema(this.document, "document");
  }

  /**
   * Fails unless the status, the headers and the body of the response are documented, and so is the
   * body that was sent if the request succeeded. Passes what the document doesn't describe: other
   * paths, and methods such as OPTIONS.
   */
  check(method: string, path: string, sent: string | undefined, response: ReadResponse): void {
    const operation = this.#findOperation(method, path);
    if (!operation) return;
    const { status, headers } = response;
    expect(Object.keys(operation.responses)).toContain(String(status));
    const described = this.#resolve(operation.responses[status]);
    if (status < 300) this.#checkSent(operation, sent);
    this.#checkHeaders(described, headers);
    this.#checkBody(described, response);
  }

  /** Fails unless the value fits a schema of the document. */
  validate(schema: object, value: unknown): void {
    const validate = this.#ajv.compile(schema);
    validate(value);
    expect(validate.errors ?? []).toEqual([]);
  }

  #findOperation(method: string, path: string): Document | undefined {
    const { paths } = this.document;
    const methods = paths[path] ?? paths[path.replace(/[^/]+$/, "{id}")];
    return methods?.[method.toLowerCase()];
  }

  #checkSent(operation: Document, sent: string | undefined): void {
    const accepted = operation.requestBody?.content["application/json"]?.schema;
    if (accepted && sent !== undefined) this.validate(accepted, JSON.parse(sent));
  }

  #checkHeaders(described: Document, headers: Headers): void {
    for (const [name, header] of Object.entries(described.headers ?? {})) {
      const { required = false, schema } = this.#resolve(header);
      const value = headers.get(name);
      if (value === null) expect({ name, required }).toEqual({ name, required: false });
      else if (schema) this.validate(schema, schema.type === "integer" ? Number(value) : value);
    }
  }

  #checkBody(described: Document, { headers, text }: ReadResponse): void {
    const type = headers.get("Content-Type");
    if (!described.content) {
      expect(text).toBe("");
      expect(type).toBeNull();
      return;
    }
    expect(Object.keys(described.content)).toContain(type ?? "none");
    const { schema } = described.content[type ?? ""];
    this.validate(schema, type === "text/event-stream" ? readEvents(text) : JSON.parse(text));
  }

  /** What a reference such as `{"$ref":"document#/components/…"}` stands for; other parts as they are. */
  #resolve(part: Document): Document {
    const [, ...keys]: string[] = part.$ref?.split("/") ?? [];
    return keys.length === 0 ? part : keys.reduce((at, key) => at[key], this.document);
  }
}
