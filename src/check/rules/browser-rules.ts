/** Browser clients: who may read answers in a page, and what nobody may keep or guess. */
import { expectHeader, expectItems, expectStatus, expectThat } from "../expectation.ts";
import { type Picture, picturesOf, titleOf } from "../gallery.ts";
import type { RequestHeaders } from "../line.ts";
import { Skipped } from "../outcome.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

const exposed = [
  "Location",
  "Link",
  "X-Request-Id",
  "Idempotency-Replayed",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
];

/** Holds every answer of the gallery against a rule. */
async function everyAnswer(
  probe: Probe,
  holds: (picture: Picture) => boolean,
  otherwise: string,
): Promise<void> {
  for (const picture of await picturesOf(probe)) {
    expectThat(holds(picture), `${titleOf(picture)} ${otherwise}`, picture.answer);
  }
}

/** A service may be told to let only some origins in, and nobody knows here which. */
async function expectOpen(probe: Probe): Promise<void> {
  const [picture] = await picturesOf(probe);
  const isChoosy = picture?.answer.items("Vary").includes("origin");
  const isClosed = picture?.answer.header("Access-Control-Allow-Origin") === undefined;
  if (isChoosy && isClosed) throw new Skipped("the service lets only some origins in");
}

function preflight(method: string): RequestHeaders {
  return {
    Origin: "https://check.example",
    "Access-Control-Request-Method": method,
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
  };
}

export const browserRules = rulesOf("browser clients", {
  "every answer has Access-Control-Allow-Origin: *": async (probe) => {
    await expectOpen(probe);
    const isOpen = ({ answer }: Picture) => answer.header("Access-Control-Allow-Origin") === "*";
    await everyAnswer(probe, isOpen, "does not have it");
  },
  "pages can read the headers of the interface": async (probe) => {
    await expectOpen(probe);
    for (const { answer } of await picturesOf(probe)) {
      expectItems(answer, "Access-Control-Expose-Headers", exposed);
    }
  },
  "a preflight of /plants allows its methods and headers": async (probe) => {
    const answer = await probe.askOpenly("OPTIONS /plants", { headers: preflight("POST") });
    expectStatus(answer, 204);
    expectItems(answer, "Access-Control-Allow-Methods", ["GET", "POST"]);
    expectItems(answer, "Access-Control-Allow-Headers", [
      "Authorization",
      "Content-Type",
      "Idempotency-Key",
      "X-Request-Id",
    ]);
  },
  "a preflight of /plants/{id} allows DELETE": async (probe) => {
    const path = `/plants/${probe.freshId()}`;
    const answer = await probe.askOpenly(`OPTIONS ${path}`, { headers: preflight("DELETE") });
    expectStatus(answer, 204);
    expectItems(answer, "Access-Control-Allow-Methods", ["DELETE"]);
    expectItems(answer, "Access-Control-Allow-Headers", ["Authorization"]);
  },
  "OPTIONS says in Allow what a path takes": async (probe) => {
    const answer = await probe.askOpenly("OPTIONS /plants");
    expectItems(answer, "Allow", ["GET", "HEAD", "POST", "OPTIONS"]);
  },
  "there are no cookies": (probe) =>
    everyAnswer(probe, ({ answer }) => answer.header("Set-Cookie") === undefined, "sets a cookie"),
  "no answer allows credentials": (probe) =>
    everyAnswer(
      probe,
      ({ answer }) => answer.header("Access-Control-Allow-Credentials") === undefined,
      "has Access-Control-Allow-Credentials",
    ),
  "answers that depend on a token have Cache-Control: no-store": (probe) =>
    everyAnswer(
      probe,
      ({ answer, dependsOnToken }) =>
        !dependsOnToken || answer.items("Cache-Control").includes("no-store"),
      "may be kept by caches",
    ),
  "every answer has X-Content-Type-Options: nosniff": (probe) =>
    everyAnswer(
      probe,
      ({ answer }) => answer.header("X-Content-Type-Options") === "nosniff",
      "does not have it",
    ),
  "a page of another origin gets its answer": async (probe) => {
    const headers = { Origin: "https://check.example" };
    const answer = await probe.garden.ask("GET /plants?limit=1", { headers });
    expectStatus(answer, 200);
    if (answer.header("Access-Control-Allow-Origin") === undefined) await expectOpen(probe);
    expectHeader(answer, "Access-Control-Allow-Origin", /^(?:\*|https:\/\/check\.example)$/);
  },
});
