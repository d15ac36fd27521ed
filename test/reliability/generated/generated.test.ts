/** The rows of the contract, with random variations. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { makeDatabase } from "../../postgres-server.ts";
import { residentMb } from "../process-growth.ts";
import { GeneratedTrial } from "./generated-trial.ts";

setDefaultTimeout(180_000);

test("200 varied rows get documented responses, in bounded memory", async () => {
  const trial = await GeneratedTrial.start();
  expect((await trial.run(1, 200)).faults).toEqual([]);
  expect(residentMb(trial.service.pid)).toBeLessThan(300);
  await trial.stop();
});

test("so do 40 on PostgreSQL", async () => {
  await using database = await makeDatabase();
  const trial = await GeneratedTrial.start({ database: database.url });
  expect((await trial.run(6, 40)).faults).toEqual([]);
  await trial.stop();
});
