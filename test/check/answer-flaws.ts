/** Flaws of problems, and of the headers of all answers. */
import { headerOf, type Serve } from "./broken-service.ts";
import {
  answers,
  digitsOf,
  type Flaws,
  type Loose,
  onStatus,
  rewrites,
  says,
  when,
  withHeader,
  without,
  withStatus,
} from "./flaw.ts";

const isProblem = (status: number) => status >= 400;

/** Changes every problem. */
function problems(change: (problem: Loose) => Loose): Serve {
  return answers((answer) =>
    isProblem(answer.status) && answer.body.length > 0 ? rewrites(change)(answer) : answer,
  );
}

function heads(name: string, change: (value: string) => string): Serve {
  return answers((answer) => {
    const value = headerOf(answer, name);
    return value === undefined ? answer : withHeader(answer, name, change(value));
  });
}

export const answerFlaws: Flaws = {
  "every refusal has the status that the interface gives it": {
    "answers 400 to a type": onStatus(415, withStatus(400)),
    "answers 500 to a large body": onStatus(413, withStatus(500)),
    "answers 400 to a taken id": onStatus(409, withStatus(400)),
  },
  "every problem is application/problem+json": {
    "says application/json": answers((answer) =>
      isProblem(answer.status) ? withHeader(answer, "Content-Type", "application/json") : answer,
    ),
    "answers 404 with a page": onStatus(404, (answer) =>
      withHeader(answer, "Content-Type", "text/html"),
    ),
  },
  "the type of a problem is urn:plantstore:problem:<code>": {
    "has another code": onStatus(
      409,
      rewrites((problem) => ({ ...problem, type: "urn:plantstore:problem:taken" })),
    ),
    "has about:blank": problems((problem) => ({ ...problem, type: "about:blank" })),
  },
  "the status of a problem is that of the answer": {
    "is text": problems((problem) => ({ ...problem, status: digitsOf(problem.status) })),
    "is left out": problems(({ status: _, ...problem }) => problem),
  },
  "a problem has a title and a detail": {
    "has no title": problems(({ title: _, ...problem }) => problem),
    "has no detail": onStatus(
      404,
      rewrites(({ detail: _, ...problem }) => problem),
    ),
  },
  "the requestId of a problem is the X-Request-Id": {
    "is left out": problems(({ requestId: _, ...problem }) => problem),
    "is another": problems((problem) => ({ ...problem, requestId: "another" })),
  },
  "400 lists faults, each with a detail and one place": {
    "lists none": problems(({ errors: _, ...problem }) => problem),
    "lists texts": problems((problem) => ({ ...problem, errors: ["wrong"] })),
    "has no details": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.map(({ detail: _, ...fault }: Loose) => fault),
    })),
    "has two places": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.map((fault: Loose) => ({ pointer: "", parameter: "", ...fault })),
    })),
  },
  "every fault of a body is told, not only the first": {
    "tells the first": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.slice(0, 1),
    })),
  },
  "faults of query, headers and body are told together": {
    "tells those of the body": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.filter(({ pointer }: Loose) => pointer !== undefined),
    })),
  },
  "every fault of a query is told": {
    "tells the first": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.slice(0, 1),
    })),
  },
  "a pointer is a JSON Pointer": {
    "does not escape": problems(({ errors, ...problem }) => ({
      ...problem,
      errors: errors?.map((fault: Loose) => ({
        ...fault,
        pointer: fault.pointer?.replaceAll("~1", "/").replaceAll("~0", "~"),
      })),
    })),
  },
  "each fault is told once, and 100 at most": {
    "tells them twice": problems(({ errors = [], ...problem }) => ({
      ...problem,
      errors: [...errors.slice(0, 2), ...errors.slice(0, 2)],
    })),
    "tells more": problems(({ errors = [], ...problem }) => ({
      ...problem,
      errors: [...errors, { parameter: "one-more", detail: "is wrong" }],
    })),
  },
  "every answer has Access-Control-Allow-Origin: *": {
    "has none in problems": answers((answer) =>
      isProblem(answer.status) ? without("Access-Control-Allow-Origin")(answer) : answer,
    ),
    "names an origin": heads("Access-Control-Allow-Origin", () => "https://plants.example"),
  },
  "pages can read the headers of the interface": {
    "cannot read Link": heads("Access-Control-Expose-Headers", (names) =>
      names.replace("Link, ", ""),
    ),
  },
  "a preflight of /plants allows its methods and headers": {
    "does not allow keys": heads("Access-Control-Allow-Headers", (names) =>
      names.replace("Idempotency-Key, ", ""),
    ),
    "does not allow POST": heads("Access-Control-Allow-Methods", (names) =>
      names.replace("POST, ", ""),
    ),
  },
  "a preflight of /plants/{id} allows DELETE": {
    "does not": heads("Access-Control-Allow-Methods", (names) => names.replace("DELETE, ", "")),
  },
  "OPTIONS says in Allow what a path takes": {
    "says nothing": when(({ method }) => method === "OPTIONS", answers(without("Allow"))),
  },
  "there are no cookies": {
    "sets one": onStatus(201, (answer) => withHeader(answer, "Set-Cookie", "session=1")),
  },
  "no answer allows credentials": {
    "allows them": answers((answer) =>
      withHeader(answer, "Access-Control-Allow-Credentials", "true"),
    ),
  },
  "answers that depend on a token have Cache-Control: no-store": {
    "has none": answers(without("Cache-Control")),
    "has none in a 401": onStatus(401, without("Cache-Control")),
    "may be kept for a minute": heads("Cache-Control", () => "max-age=60"),
  },
  "every answer has X-Content-Type-Options: nosniff": {
    "has none": answers(without("X-Content-Type-Options")),
    "has none in a 422": onStatus(422, without("X-Content-Type-Options")),
  },
  "a page of another origin gets its answer": {
    "is refused": when((request) => headerOf(request, "origin") !== undefined, says(403)),
  },
};
