/**
 * `npm run prove:access -- [comparisons] [seed]`: on both engines, times deletions of plants that
 * never existed and of plants in another garden. The times must not tell them apart.
 */
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { makeDice, spread } from "../../dice.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { engines } from "../../scenarios/scenario.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { writeRequest } from "../kept-connection.ts";
import { prove } from "../proof.ts";
import { type Comparison, compareTimes, deviationMax, type Kind } from "./timing.ts";

const rounds = 5_000;
const warmUpRounds = 300;

async function timeDeletions(database: string, seed: number): Promise<Comparison[]> {
  const kinds = await deletionsByKind(database);
  const dice = makeDice(spread(seed));
  await using service = await startService({ database, args: ["--threads", "1"] });
  await compareTimes(service.port, kinds, 404, warmUpRounds, dice);
  // Awaited here, because the service ends with this function.
  return await compareTimes(service.port, kinds, 404, rounds, dice);
}

/** Ids take turns, so that those that exist lie no further apart than the others. */
async function deletionsByKind(database: string): Promise<Record<string, Kind>> {
  const storage = await openStorage(database, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const idOf = (turn: number, kind: number) => BigInt(3 * turn + kind);
  const turns = Array.from({ length: rounds }, (_, turn) => turn);
  for (const garden of ["another", "one more"]) {
    await storage.apply(turns.map((turn) => create({ garden, id: idOf(turn, 3) })));
  }
  await storage.close();
  const remove = (kind: number) => (turn: number) =>
    writeRequest(`DELETE /plants/${idOf(turn, kind)}`, { token });
  return { "never there": remove(1), "never, too": remove(2), "another garden's": remove(3) };
}

function show(title: string, comparisons: readonly Comparison[]): void {
  const lines = comparisons.map(({ kind, medianUs, longerShare, deviation }) => {
    const share = `${(longerShare * 100).toFixed(1)} %`;
    return `  ${kind.padEnd(16)} ${medianUs.toFixed(1).padStart(9)} µs ${share.padStart(8)} ${deviation.toFixed(2).padStart(7)}`;
  });
  const heads = `  ${"".padEnd(16)}       median   longer  deviations`;
  process.stdout.write(`${[title, heads, ...lines].join("\n")}\n`);
}

async function compare(seed: number) {
  using folder = makeTemporaryFolder();
  const engine = engines[seed % engines.length];
  const server = engine === "PostgreSQL" ? await makeDatabase() : undefined;
  try {
    const database = server?.url ?? join(folder.path, "plants.db");
    const comparisons = await timeDeletions(database, seed);
    show(`${engine}, plants that are not the caller's`, comparisons);
    const differing = comparisons.filter(({ deviation }) => Math.abs(deviation) > deviationMax);
    return {
      faults: differing.map(({ kind, deviation }) => {
        return `${engine}: ${kind} differs from ${comparisons[0]?.kind}: ${deviation.toFixed(1)}`;
      }),
      figures: { deletions: comparisons.length * rounds },
    };
  } finally {
    await server?.drop();
  }
}

await prove({ name: "access", trials: "comparisons", count: engines.length, run: compare });
