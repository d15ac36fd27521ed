/**
 * The short form: some thousand generated requests, and broken services that they must find out.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { headerOf, openBrokenService, type Serve } from "../../check/broken-service.ts";
import {
  answers,
  isCreate,
  make,
  onStatus,
  rewrites,
  says,
  when,
  withHeader,
  withStatus,
} from "../../check/flaw.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { takeVitalSigns } from "../vital-signs.ts";
import { GeneratedTrial } from "./generated-trial.ts";

setDefaultTimeout(180_000);

test("5,000 requests are answered as the document says, in bounded memory", async () => {
  const trial = await GeneratedTrial.start();
  for (let seed = 1; seed <= 5; seed++) {
    expect((await trial.run(seed, 1_000)).faults).toEqual([]);
  }
  if (process.platform === "linux") {
    expect(takeVitalSigns(trial.service.pid).residentMb).toBeLessThan(300);
  }
  await trial.stop();
});

test("500 requests on PostgreSQL are answered as the document says", async () => {
  const database = await makeDatabase();
  const trial = await GeneratedTrial.start({ database: database.url });
  expect((await trial.run(6, 500)).faults).toEqual([]);
  await trial.stop();
  await database.drop();
});

/** Takes every plant away again once its create is answered. */
const losing: Serve = async (request, forward) => {
  const answer = await forward(request);
  const target = headerOf(answer, "location");
  const headers = request.headers.filter(([name]) => /^(?:host|authorization)$/i.test(name));
  if (target) await forward({ method: "DELETE", target, headers, body: Buffer.alloc(0) });
  return answer;
};

describe("a service is found out that", () => {
  const flaws: Readonly<Record<string, [fault: RegExp, serve: Serve]>> = {
    "fails on a plant with a tilde": [
      /^smallest after \d+ steps: "POST \/plants.{1,300}~.{0,20}"$/,
      when((request) => isCreate(request) && request.body.includes("~"), says(500)),
    ],
    "does not know what it stored": [
      /^503: The outcome is unknown/,
      when(isCreate, async () =>
        withHeader(make(503, "The outcome is unknown."), "Retry-After", "1"),
      ),
    ],
    "creates with another status": [/200 where 201/, onStatus(201, withStatus(200))],
    "loses the tag": [
      /stored as/,
      onStatus(
        201,
        rewrites((plant) => ({ ...plant, tag: "" })),
      ),
    ],
    "loses plants": [/is not listed, and was created 1 times more/, losing],
    "leaves a field out of problems": [
      /required property 'requestId'/,
      onStatus(
        400,
        rewrites(({ requestId: _, ...problem }) => problem),
      ),
    ],
    "has an answer that nobody documented": [/418/, onStatus(404, withStatus(418))],
  };
  let serve: Serve;
  let trial: GeneratedTrial;
  let close: () => void;

  beforeAll(async () => {
    trial = await GeneratedTrial.start({
      async standIn({ url, token }) {
        // It has one request on each connection, and must say so.
        const closes = answers((answer) => withHeader(answer, "Connection", "close"));
        const broken = await openBrokenService(
          url,
          { write: token } as never,
          (request, forward, tokens) =>
            closes(request, (passed) => serve(passed, forward, tokens), tokens),
        );
        close = broken.close;
        return Number(new URL(broken.url).port);
      },
    });
  });

  afterAll(async () => {
    close();
    await trial.stop();
  });

  test.each(Object.entries(flaws))("%s", async (_, [fault, flawed]) => {
    serve = flawed;
    const { faults } = await trial.run(7, 150);
    expect(faults.join("\n")).toMatch(new RegExp(fault, "m"));
  });
});
