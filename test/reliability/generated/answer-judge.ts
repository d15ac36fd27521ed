/** Tells whether an answer to a generated request is one that it may have. */
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { type Document, DocumentedAnswers } from "../../documented-answers.ts";
import type { GeneratedRequest } from "./request-generator.ts";

const problemSchema = { $ref: "#/components/schemas/Problem" };

export class AnswerJudge {
  readonly #documented: DocumentedAnswers;

  constructor(document: Document) {
    this.#documented = new DocumentedAnswers(document);
  }

  /** What is wrong with it; absent if nothing is. */
  findFault(request: GeneratedRequest, outcome: RawResponse | NoResponse): string | undefined {
    if (outcome instanceof NoResponse) return `no answer: ${outcome.message}`;
    const { status } = outcome;
    if (status >= 500) return `${status}: ${outcome.body}`;
    const { expected } = request;
    if (expected?.includes(status) === false) {
      return `${status} where ${expected.join(" or ")} was due: ${outcome.body}`;
    }
    if (outcome.surplus.length > 0) return `more than an answer: ${outcome.surplus}`;
    return (
      this.#findDocumentFault(request, outcome) ??
      findIdFault(request, outcome) ??
      findEchoFault(request, outcome)
    );
  }

  #findDocumentFault(request: GeneratedRequest, answer: RawResponse): string | undefined {
    const text = answer.body.toString();
    if (request.method === "HEAD") return text === "" ? undefined : "HEAD has a body";
    const header = (wanted: string) => headerOf(answer, wanted);
    if (request.operation) {
      const { path, method } = request.operation;
      return this.#documented.findFault(path, method, { status: answer.status, header, text });
    }
    if (header("content-type") !== "application/problem+json") return "not a problem";
    return this.#documented.findMismatch(problemSchema, JSON.parse(text));
  }
}

export function headerOf({ headers }: RawResponse, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
}

function findIdFault({ headers }: GeneratedRequest, answer: RawResponse): string | undefined {
  const id = headerOf(answer, "x-request-id");
  if (id === undefined || !/^[\w.-]{1,128}$/.test(id)) return `the request's id is ${id}`;
  const sent = headers.find((line) => line.startsWith("X-Request-Id: "))?.slice(14);
  const isKept = sent !== undefined && /^[\w.-]{1,128}$/.test(sent);
  return isKept && sent !== id ? `the id of the request is not ${sent} but ${id}` : undefined;
}

/** A plant comes back as it was sent. */
function findEchoFault({ fields }: GeneratedRequest, answer: RawResponse): string | undefined {
  if (answer.status !== 201 || !fields) return undefined;
  const { name, tag = '""' } = fields;
  const sent = { name: JSON.parse(name ?? "null"), tag: JSON.parse(tag) };
  const stored = JSON.parse(answer.body.toString());
  return Bun.deepEquals(sent, stored) ? undefined : `stored as ${answer.body}`;
}
