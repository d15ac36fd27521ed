/** The client against a live service. As a package, under Node, it is in test/slow/. */
import { afterAll, describe, setDefaultTimeout, test } from "bun:test";
import { makeTokens, serveHere } from "../end-to-end/running-service.ts";
import { type ClientCases, runCase } from "./client-case.ts";
import { eventCases } from "./event-cases.ts";
import { manyCases } from "./many-cases.ts";
import { plainCases } from "./plain-cases.ts";
import { putCases } from "./put-cases.ts";
import { troubleCases } from "./trouble-cases.ts";

setDefaultTimeout(120_000);

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

const cases: ClientCases = {
  ...plainCases,
  ...troubleCases,
  ...eventCases,
  ...manyCases,
  ...putCases,
};

const tokens = await makeTokens(service, "bun", Object.keys(cases).length);

describe.concurrent("it", () => {
  test.each(
    Object.entries(cases).map(([name, run], index) => [name, run, tokens[index] ?? ""] as const),
  )("%s", (_, run, token) => runCase(run, { url: service.url, token }));
});
