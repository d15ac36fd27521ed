/** Broken services are found out by generated requests. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { headerOf, openBrokenService, type Serve } from "../../check/broken-service.ts";
import { GeneratedTrial } from "./generated-trial.ts";

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
    "creates with another status": [
      /200 where 201/,
      async (request, forward) => {
        const answer = await forward(request);
        return answer.status === 201 ? { ...answer, status: 200 } : answer;
      },
    ],
    "loses plants": [/is not listed, and was created 1 times more/, losing],
  };
  let serve: Serve;
  let trial: GeneratedTrial;
  let close: () => void;

  beforeAll(async () => {
    trial = await GeneratedTrial.start({
      async standIn({ url, token }) {
        // It has one request on each connection, and must say so.
        const broken = await openBrokenService(
          url,
          { write: token } as never,
          async (request, forward, tokens) => {
            const answer = await serve(request, forward, tokens);
            const kept = answer.headers.filter(([name]) => name.toLowerCase() !== "connection");
            return { ...answer, headers: [...kept, ["Connection", "close"]] };
          },
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
