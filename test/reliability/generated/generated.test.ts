/** A few thousand generated requests. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { makeDatabase } from "../../postgres-server.ts";
import { sampleProcess } from "../process-growth.ts";
import { GeneratedTrial } from "./generated-trial.ts";

setDefaultTimeout(180_000);

test("5,000 responses are as the OpenAPI document says, in bounded memory", async () => {
  const trial = await GeneratedTrial.start();
  for (let seed = 1; seed <= 5; seed++) {
    expect((await trial.run(seed, 1_000)).faults).toEqual([]);
  }
  if (process.platform === "linux") {
    expect(sampleProcess(trial.service.pid).residentMb).toBeLessThan(300);
  }
  await trial.stop();
});

test("500 responses on PostgreSQL are as the OpenAPI document says", async () => {
  const database = await makeDatabase();
  const trial = await GeneratedTrial.start({ database: database.url });
  expect((await trial.run(6, 500)).faults).toEqual([]);
  await trial.stop();
  await database.drop();
});
