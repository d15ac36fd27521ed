/** Errors: problems as of RFC 9457, and every fault of a request at once. */
import { expectFaults, expectThat, faultsOf } from "../expectation.ts";
import { type Picture, picturesOf, titleOf } from "../gallery.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";
import { nameMark } from "../tended-garden.ts";

interface FoundProblem {
  readonly type?: unknown;
  readonly title?: unknown;
  readonly status?: unknown;
  readonly detail?: unknown;
  readonly requestId?: unknown;
}

/** Holds every problem of the gallery against a rule. `wrong` says what is wrong, if anything. */
function everyProblem(wrong: (problem: FoundProblem, picture: Picture) => string | undefined) {
  return async (probe: Probe): Promise<void> => {
    for (const picture of await picturesOf(probe)) {
      if (picture.code === undefined) continue;
      const fault = wrong((picture.answer.json ?? {}) as FoundProblem, picture);
      expectThat(fault === undefined, `${titleOf(picture)}: ${fault}`, picture.answer);
    }
  };
}

function isFilled(text: unknown): boolean {
  return typeof text === "string" && text.trim() !== "";
}

export const errorRules = rulesOf("errors", {
  "every refusal has the status that the interface gives it": everyProblem((_, picture) =>
    picture.answer.status === picture.status ? undefined : `the status must be ${picture.status}`,
  ),
  "every problem is application/problem+json": everyProblem((_, { answer }) => {
    const type = answer.header("Content-Type") ?? "absent";
    const isProblem = /^application\/problem\+json(?:; ?charset=utf-8)?$/i.test(type);
    return isProblem ? undefined : `the header Content-Type is ${type}`;
  }),
  "the type of a problem is urn:plantstore:problem:<code>": everyProblem(({ type }, { code }) =>
    type === `urn:plantstore:problem:${code}`
      ? undefined
      : `type must end in ${code}, and is ${type}`,
  ),
  "the status of a problem is that of the answer": everyProblem(({ status }, { answer }) =>
    status === answer.status ? undefined : `status is ${status}`,
  ),
  "a problem has a title and a detail": everyProblem(({ title, detail }) =>
    isFilled(title) && isFilled(detail) ? undefined : "title or detail is missing",
  ),
  "the requestId of a problem is the X-Request-Id": everyProblem(({ requestId }, { answer }) =>
    isFilled(requestId) && requestId === answer.header("X-Request-Id")
      ? undefined
      : `requestId is ${requestId}`,
  ),
  "400 lists faults, each with a detail and one place": everyProblem((_, { answer, status }) => {
    const faults = faultsOf(answer);
    if (status !== 400) return undefined;
    if (faults.length === 0) return "errors is missing or empty";
    const isWhole = faults.every(
      ({ pointer, parameter, header, detail }) =>
        isFilled(detail) &&
        [pointer, parameter, header].filter((place) => typeof place === "string").length === 1,
    );
    return isWhole ? undefined : "an item of errors has no detail, or not one place";
  }),
  "every fault of a body is told, not only the first": async (probe) => {
    const body = { name: "", tag: 5, id: String(probe.freshId()), colour: 1 };
    expectFaults(await probe.garden.create(body), "/name", "/tag", "/id", "/colour");
  },
  "faults of query, headers and body are told together": async (probe) => {
    const answer = await probe.garden.ask("POST /plants?colour=green", {
      body: { name: nameMark, id: probe.freshId(), tag: null },
      headers: { "Idempotency-Key": "a b" },
    });
    expectFaults(answer, "colour", "Idempotency-Key", "/tag");
  },
  "every fault of a query is told": async ({ garden }) => {
    const answer = await garden.ask("GET /plants?limit=x&after=y&fields=z&colour=green");
    expectFaults(answer, "limit", "after", "fields", "colour");
  },
  "a pointer is a JSON Pointer": async (probe) => {
    const body = { ...probe.draft("pointer"), "a/b~c": 1 };
    expectFaults(await probe.garden.create(body), "/a~1b~0c");
  },
  "each fault is told once, and 100 at most": async ({ garden }) => {
    const query = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");
    const answer = await garden.ask(`GET /plants?limit=1&${query}`);
    expectFaults(answer, "a0");
    const faults = faultsOf(answer).map((fault) => JSON.stringify(fault));
    expectThat(faults.length <= 100, `${faults.length} faults are told`, answer);
    expectThat(new Set(faults).size === faults.length, "a fault is told twice", answer);
  },
});
