/** More than it can take: while the storage takes no writes, and in one turn of the event loop. */
import { expect, test } from "bun:test";
import { Admission, admissionDefaults } from "../../../src/http/admission.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { sendCrowd } from "./crowd.ts";
import { flood } from "./flood.ts";
import { stallPostgres, stallSqlite } from "./stall.ts";

const args = ["--threads", "1"];

test("a flood of creates on a stalled file is bounded, and leaves what was promised", async () => {
  await using service = await startService({ args });
  const { faults } = await flood(service, () => stallSqlite(service.database));
  expect(faults).toEqual([]);
}, 30_000);

test("so is one on a PostgreSQL whose table is locked", async () => {
  const database = await makeDatabase();
  {
    await using service = await startService({ args, database: database.url });
    const { faults } = await flood(service, () => stallPostgres(database.url));
    expect(faults).toEqual([]);
  }
  await database.drop();
}, 30_000);

const clientsCount = 2_000;
const answerMs = 0.1;

/** How many answers at the most there were between two turns, to clients that never rest. */
async function countAnswersPerTurn(
  start: (run: () => Response) => Response | Promise<Response>,
): Promise<number> {
  let answers = 0;
  let answersMax = 0;
  await using server = Bun.serve({
    port: 0,
    fetch: () =>
      start(() => {
        for (const endsAtMs = performance.now() + answerMs; performance.now() < endsAtMs; );
        if (answers === 0) setImmediate(() => (answers = 0));
        answers++;
        answersMax = Math.max(answersMax, answers);
        return new Response("");
      }),
  });
  await sendCrowd({
    port: server.port ?? 0,
    requests: ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    connectionsMax: clientsCount,
    durationMs: 300,
    deadlineMs: 20_000,
    timeoutMs: 20_000,
  });
  return answersMax;
}

test("however many clients ask, a tick of the event loop starts a bounded number", async () => {
  const { tickMs, crowdedTickMs } = admissionDefaults;
  const admission = new Admission({ ...admissionDefaults, waitMs: 60_000 });
  const startedMax = (tickMs + crowdedTickMs) / answerMs;
  expect(await countAnswersPerTurn((run) => admission.start(run))).toBeLessThanOrEqual(startedMax);
}, 60_000);
