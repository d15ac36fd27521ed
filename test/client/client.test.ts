/** The client against a live service. As a package, under Node, it is in test/slow/. */
import { afterAll, describe, test } from "bun:test";
import { makeTokens, serveHere } from "../../testing/running-service.ts";
import { runCase } from "./client-case.ts";
import { eventCases } from "./event-cases.ts";
import { manyCases } from "./many-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

const cases = Object.entries({ ...plainCases, ...troubleCases, ...eventCases, ...manyCases });
const tokens = await makeTokens(service, "bun", cases.length);

describe.concurrent("it", () => {
  for (const [index, [name, run]] of cases.entries()) {
    const world = { url: service.url, token: tokens[index] ?? "" };
    test(name, () => runCase(run, world), 120_000);
  }
});
