/** A PostgreSQL primary is lost under load, and no confirmed write is lost. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { skipsUnless } from "../../skipping.ts";
import { hasHaproxy } from "../database-proxy.ts";
import { FailoverTrial } from "./prove.ts";

setDefaultTimeout(120_000);

let trial: FailoverTrial;
/** Another one in each run; a failure shows it. */
let seed = Math.floor(Math.random() * 1_000_000);

const isSkipped = skipsUnless(hasHaproxy, "not installed: haproxy");

beforeAll(async () => {
  if (!isSkipped) trial = await FailoverTrial.start();
});

afterAll(() => trial?.stop());

/** `npm run prove failover` also shuts the primary down, which needs none of what these do. */
describe.skipIf(isSkipped)(
  "every response holds, and writes resume without a restart, when the primary is",
  () => {
    test.each(["killed", "cut off", "frozen"] as const)("%s", async (loss) => {
      if (loss !== "killed") await trial.replaceStandby();
      const { faults } = await trial.run(loss, ++seed);
      expect({ seed, faults }).toEqual({ seed, faults: [] });
    });
  },
);
