/** Whether a generated request may have this response. */
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { type Document, DocumentedAnswers } from "../../documented-answers.ts";
import { headerOf } from "../kept-connection.ts";
import type { GeneratedRequest } from "./request-generator.ts";

const problemSchema = { $ref: "#/components/schemas/Problem" };
const requestId = /^[\w.-]{1,128}$/;

export class ResponseRules {
  readonly #documented: DocumentedAnswers;

  constructor(document: Document) {
    this.#documented = new DocumentedAnswers(document);
  }

  /** What is wrong; undefined if nothing is. */
  findFault(request: GeneratedRequest, outcome: RawResponse | NoResponse): string | undefined {
    if (outcome instanceof NoResponse) return `no response: ${outcome.message}`;
    const { status, body, surplus } = outcome;
    const { expected } = request;
    if (status >= 500) return `${status}: ${body}`;
    if (expected?.includes(status) === false) {
      return `${status} instead of ${expected.join(" or ")}: ${body}`;
    }
    if (surplus.length > 0) return `bytes after the response: ${surplus}`;
    return (
      this.#findDocumentFault(request, outcome) ??
      findIdFault(request, outcome) ??
      findEchoFault(request, outcome)
    );
  }

  #findDocumentFault(request: GeneratedRequest, response: RawResponse): string | undefined {
    const text = response.body.toString();
    const header = (name: string) => headerOf(response, name);
    if (request.operation) {
      const answer = { status: response.status, header, text };
      const query = new URLSearchParams(request.target.split("?")[1]);
      const fields = query.get("fields") ?? undefined;
      const method = request.method.toLowerCase();
      return this.#documented.findFault(request.operation.path, method, answer, fields);
    }
    if (request.method === "HEAD") return text === "" ? undefined : "HEAD has a body";
    if (header("content-type") !== "application/problem+json") return "not a problem";
    return this.#documented.findMismatch(problemSchema, JSON.parse(text));
  }
}

/** A valid request id is sent back, and an invalid one replaced. */
function findIdFault({ headers }: GeneratedRequest, response: RawResponse): string | undefined {
  const id = headerOf(response, "x-request-id");
  if (id === undefined || !requestId.test(id)) return `the request id is ${id}`;
  const sent = headers.find((line) => line.startsWith("X-Request-Id: "))?.slice(14);
  const isKept = sent !== undefined && requestId.test(sent);
  return isKept && sent !== id ? `the request id is not ${sent} but ${id}` : undefined;
}

/** A plant comes back as it was sent. */
function findEchoFault({ fields }: GeneratedRequest, response: RawResponse): string | undefined {
  if (response.status !== 201 || !fields) return undefined;
  const { name, tag = '""' } = fields;
  const sent = { name: JSON.parse(name ?? "null"), tag: JSON.parse(tag) };
  // Without the id, and with the fields that were asked for.
  const { id: _, ...stored } = JSON.parse(response.body.toString());
  return Bun.deepMatch(stored, sent) ? undefined : `stored as ${response.body}`;
}
