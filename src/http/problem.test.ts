/** From an error to the problem that is shown: statuses, headers, and nothing of the inside. */
import { describe, expect, test } from "bun:test";
import { type ErrorCode, errorCodes, PlantStoreError } from "../domain/errors.ts";
import { type ProblemContext, problemReply, toPlantStoreError } from "./problem.ts";

const context: ProblemContext = { requestId: "r-1", isTokenSent: true, allow: "GET, HEAD" };

const statuses: Record<ErrorCode, number> = {
  "invalid-request": 400,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  "method-not-allowed": 405,
  conflict: 409,
  "precondition-failed": 412,
  "too-large": 413,
  "unsupported-media-type": 415,
  "idempotency-mismatch": 422,
  "rate-limited": 429,
  internal: 500,
  unavailable: 503,
  "storage-full": 507,
};

test.each(Object.entries(statuses))("%s has the status %i", (code, status) => {
  const error = new PlantStoreError(code as ErrorCode, "Do this.");
  const reply = problemReply(error, context);
  expect(reply.status).toBe(status);
  expect(reply.contentType).toBe("application/problem+json");
  expect(JSON.parse(reply.body as string)).toEqual({
    type: `urn:plantstore:problem:${code}`,
    title: errorCodes[code as ErrorCode].title,
    status,
    detail: "Do this.",
    requestId: "r-1",
    ...(status === 400 && { errors: [] }),
  });
});

describe("an unexpected error", () => {
  test.each([
    ["an error", new Error("SELECT secret FROM tokens")],
    ["an error with a code of its own", Object.assign(new Error("secret"), { code: "not-found" })],
    ["text", "secret"],
    ["nothing", undefined],
  ])("that is %s becomes internal and says nothing of the inside", (_case, thrown) => {
    const shown = toPlantStoreError(thrown);
    const reply = problemReply(shown, context);
    expect(shown.cause).toBe(thrown);
    expect(reply.status).toBe(500);
    expect(reply.body as string).not.toContain("secret");
    expect(reply.body as string).not.toContain("stack");
  });

  test("differs from an expected one, which stays as it is", () => {
    const error = new PlantStoreError("conflict", "x", { cause: new Error("secret") });
    expect(toPlantStoreError(error)).toBe(error);
    expect(problemReply(error, context).body as string).not.toContain("secret");
  });
});

test.each<[string, ErrorCode, Partial<ProblemContext>, Record<string, string>]>([
  ["a service that is unavailable", "unavailable", {}, { "Retry-After": "1" }],
  ["too many requests", "rate-limited", {}, { "Retry-After": "1" }],
  ["a full storage", "storage-full", {}, {}],
])("%s has its headers", (_case, code, change, expected) => {
  const reply = problemReply(new PlantStoreError(code, "x"), { ...context, ...change });
  expect(reply.headers).toEqual(expected);
});
