/**
 * Refusals by the real program, timed kind by kind: of tokens that are new to it, of such as are
 * not, and of plants that are not the caller's.
 */
import { join } from "node:path";
import { issueToken } from "../../../src/auth/issue.ts";
import { makeToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { makeDice, spread } from "../../dice.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import type { Engine } from "../../scenarios/scenario.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { writeRequest } from "../kept-connection.ts";
import { makeRefusedTokens } from "./refused-tokens.ts";
import { type Comparison, compareTimes, type Kind } from "./timing.ts";

/**
 * `first`: tokens for which the storage must be asked. `again`: those whose refusal is remembered.
 * `absent`: deletions of plants that never were, and of another garden's.
 */
export type Subject = "first" | "again" | "absent";

export interface TimingOptions {
  readonly engine: Engine;
  readonly subject: Subject;
  readonly rounds: number;
  readonly seed: number;
  /** Another program than ours, to see that a broken one is found out. */
  readonly program?: string;
}

const warmUpRounds = 300;

export async function timeRefusals(options: TimingOptions): Promise<Comparison[]> {
  using folder = makeTemporaryFolder();
  const server = options.engine === "PostgreSQL" ? await makeDatabase() : undefined;
  const database = server?.url ?? join(folder.path, "plants.db");
  try {
    return await timeOn(database, options);
  } finally {
    await server?.drop();
  }
}

async function timeOn(database: string, options: TimingOptions): Promise<Comparison[]> {
  const { subject, rounds, seed, program } = options;
  const isAbsent = subject === "absent";
  const requests = isAbsent
    ? await deleteAbsent(database, rounds)
    : await listWithRefused(database, subject === "first" ? rounds : 1);
  const dice = makeDice(spread(seed));
  await using service = await startService({ database, args: ["--threads", "1"], program });
  const unknown = () => writeRequest("GET /plants", { token: makeToken() });
  await compareTimes(service.port, { any: unknown }, 401, warmUpRounds, dice);
  const kinds = Object.entries(requests).map(([name, texts]): [string, Kind] => {
    return [name, (turn) => texts[turn % texts.length] ?? ""];
  });
  const status = isAbsent ? 404 : 401;
  // Waited for here, because the service goes when this function ends.
  return await compareTimes(service.port, Object.fromEntries(kinds), status, rounds, dice);
}

/** By kind, requests on the wire. */
type Requests = Readonly<Record<string, readonly string[]>>;

async function listWithRefused(database: string, count: number): Promise<Requests> {
  const tokens = await makeRefusedTokens(database, count);
  const list = (token: string) => writeRequest("GET /plants", { token });
  return Object.fromEntries(Object.entries(tokens).map(([kind, each]) => [kind, each.map(list)]));
}

/** Ids in turn, so that those that are there lie no further from each other than the others. */
async function deleteAbsent(database: string, count: number): Promise<Requests> {
  const storage = await openStorage(database, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const ids = Array.from({ length: 3 * count }, (_, index) => BigInt(index + 1));
  const [never, never2, others] = [0, 1, 2].map((rest) =>
    ids.filter((id) => Number(id) % 3 === rest),
  );
  for (const garden of ["another", "one more"]) {
    await storage.apply((others ?? []).map((id) => create({ garden, id })));
  }
  await storage.close();
  const remove = (id: bigint) => writeRequest(`DELETE /plants/${id}`, { token });
  return {
    "never there": (never ?? []).map(remove),
    "never, too": (never2 ?? []).map(remove),
    "another garden's": (others ?? []).map(remove),
  };
}
