/** The client against a live service. As a package, under Node, it is in test/slow/. */
import { afterAll, describe, test } from "bun:test";
import { makeTokens, serveHere } from "../../testing/running-service.ts";
import { type ClientCases, runCase } from "./client-case.ts";
import { eventCases } from "./event-cases.ts";
import { manyCases } from "./many-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

const smallCases = { ...plainCases, ...troubleCases, ...eventCases };

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

const casesCount = Object.keys(smallCases).length + Object.keys(manyCases).length;
const unusedTokens = await makeTokens(service, "bun", casesCount);

/** Makes a test of each case, which has a garden of its own. */
function defineTests(cases: ClientCases): void {
  for (const [name, run] of Object.entries(cases)) {
    const token = unusedTokens.pop() ?? "";
    test(name, () => runCase(run, { url: service.url, token }), 120_000);
  }
}

describe.concurrent("the client", () => defineTests(smallCases));

// One after the other: together, their requests could be more than the service takes.
describe("the client", () => defineTests(manyCases));
