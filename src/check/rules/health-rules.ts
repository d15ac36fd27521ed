/** Health: what tells that the service is alive, ready, and how it is doing. */
import { expectHeader, expectStatus, expectThat } from "../expectation.ts";
import { rulesOf } from "../rule.ts";

export const healthRules = rulesOf("health", {
  "/healthz is 200 without a token": async (probe) => {
    expectStatus(await probe.askOpenly("GET /healthz"), 200);
  },
  "/readyz is 200 without a token": async (probe) => {
    expectStatus(await probe.askOpenly("GET /readyz"), 200);
  },
  "/metrics is Prometheus text, without a token": async (probe) => {
    const answer = await probe.askOpenly("GET /metrics");
    expectStatus(answer, 200);
    expectHeader(answer, "Content-Type", /^text\/plain\b/);
    expectThat(/^# TYPE \w+ \w+$/m.test(answer.text), "there is no line # TYPE", answer);
    const lines = answer.text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const odd = lines.find((line) => !/^[a-zA-Z_:][\w:]*(?:\{.*\})? \S+(?: \d+)?$/.test(line));
    expectThat(odd === undefined, `this is no sample: ${odd}`, answer);
  },
  "unknown parameters are 400 there too": async (probe) => {
    expectStatus(await probe.askOpenly("GET /healthz?colour=green"), 400);
  },
});
