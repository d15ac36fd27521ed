/**
 * `npm run bench:bulk -- [ROUNDS]`: what other callers' creates notice of a bulk of 10,000 plants
 * that is sent every second to another garden.
 */
import { linesMax } from "../src/http/bulk.ts";
import { plantName } from "./contenders/contender.ts";
import { seedGardens } from "./contenders/many-gardens.ts";
import { plantStore } from "./contenders/plant-store.ts";
import { describePlantAction } from "./contenders/plants-over-http.ts";
import { say, showProgress } from "./output.ts";
import { medianOf, medianRound } from "./parts/median.ts";
import { type Round, Seat } from "./parts/seat.ts";
import { killAllChildren } from "./process/children.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const rounds = Number(process.argv[2] ?? 7);
/** So that every round has several bulks. */
const roundSeconds = 5;
const bulkEveryMs = 1_000;
const p99TimesMax = 2;
const connections = 16;

/**
 * Paced callers send what they would send anyway, so each delay is theirs. Busy ones send the next
 * create right after a response: they slow down with the service, and notice delays less.
 */
const callers = [
  { title: `${connections} paced, a pause of 10 ms`, load: { connections, pauseMs: 10 } },
  { title: `${connections} busy, no pause`, load: { connections } },
].map((caller) => ({ ...caller, without: [] as Round[], beside: [] as Round[] }));

const bulk = Array.from(
  { length: linesMax },
  (_, index) => `${JSON.stringify({ name: plantName(index), tag: "bulk" })}\n`,
).join("");
const bulksMs: number[] = [];
const workspace = new Workspace();

try {
  const directory = workspace.makeDirectory("bulk");
  await plantStore.prepare(directory);
  const [ownToken = "", bulkToken = ""] = seedGardens(directory, 2, 1);
  const seat = await Seat.start(plantStore, directory);
  const creates = [{ action: describePlantAction("create", ownToken, 0), weight: 1 }];
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const { title, load, without, beside } of callers) {
      showProgress(`${title}: round ${round} of ${rounds}`);
      const drive = () => seat.drive(creates, { ...load, durationSeconds: roundSeconds });
      const alone = await drive();
      const stopBulks = startBulks(seat.host, bulkToken);
      const disturbed = await drive();
      await stopBulks();
      if (round === 0) continue;
      without.push(alone);
      beside.push(disturbed);
    }
  }
  await seat.child.stop();

  const rows = callers.flatMap(({ title, without, beside }) => {
    const [alone, disturbed] = [medianRound(without), medianRound(beside)];
    const ratio = disturbed.p99Ms / alone.p99Ms;
    const verdict = ratio <= p99TimesMax ? "yes" : "NO";
    return [
      [`${title}: alone`, ...renderRound(alone), "", ""],
      [`${title}: beside bulks`, ...renderRound(disturbed), `${ratio.toFixed(2)} ×`, verdict],
    ];
  });
  const header = [
    ...["creates of others", "creates/s", "p50 ms", "p99 ms", "max ms", "faults"],
    ...["resident MB", "p99, of alone", `≤ ${p99TimesMax} ×`],
  ];
  say(renderTable(header, rows));
  say(
    `\nA bulk of ${linesMax.toLocaleString("en")} lines every second took ${medianOf(bulksMs).toFixed(0)} ms`,
  );
  say(
    `(median of ${bulksMs.length}, at most ${Math.max(...bulksMs).toFixed(0)} ms). ${rounds} interleaved rounds of ${roundSeconds} s; medians.`,
  );
} finally {
  killAllChildren();
  workspace.remove();
}

/** Sends bulks until the function that it returns is called; a late one is not made up for. */
function startBulks(host: string, token: string): () => Promise<void> {
  let isStopped = false;
  const sending = (async () => {
    while (!isStopped) {
      const startedAtMs = performance.now();
      await sendBulk(host, token);
      const tookMs = performance.now() - startedAtMs;
      bulksMs.push(tookMs);
      await Bun.sleep(Math.max(0, bulkEveryMs - tookMs));
    }
  })();
  // It fails where it is awaited, after the round.
  sending.catch(() => {});
  return () => {
    isStopped = true;
    return sending;
  };
}

/** With a key, as the import and the client send it. */
async function sendBulk(host: string, token: string): Promise<void> {
  const response = await fetch(`http://${host}/plants/bulk`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/jsonl",
      "Idempotency-Key": crypto.randomUUID(),
    },
    body: bulk,
  });
  const results = await response.text();
  const created = results.match(/"status":201/g)?.length ?? 0;
  if (created !== linesMax) {
    throw new Error(
      `A bulk got ${response.status}, and ${created} plants: ${results.slice(0, 300)}`,
    );
  }
}

function renderRound(round: Round): string[] {
  return [
    Math.round(round.answersPerSecond).toLocaleString("en"),
    ...[round.p50Ms, round.p99Ms, round.maxMs].map((ms) => ms.toFixed(2)),
    String(round.faults),
    round.residentMegabytes.toFixed(0),
  ];
}
