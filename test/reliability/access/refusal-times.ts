/**
 * Refusals by the real program, timed kind by kind: when a token is new to it, and when it is not.
 */
import { join } from "node:path";
import { makeToken } from "../../../src/auth/opaque-token.ts";
import { makeDice, spread } from "../../dice.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import type { Engine } from "../../scenarios/scenario.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { writeRequest } from "../kept-connection.ts";
import { makeRefusedTokens } from "./refused-tokens.ts";
import { type Comparison, compareTimes, type Kind } from "./timing.ts";

/** `first`: the storage must be asked. `again`: the refusal is remembered. */
export type Sight = "first" | "again";

export interface TimingOptions {
  readonly engine: Engine;
  readonly sight: Sight;
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
  const { sight, rounds, seed, program } = options;
  const tokens = await makeRefusedTokens(database, sight === "first" ? rounds : 1);
  const dice = makeDice(spread(seed));
  await using service = await startService({
    database,
    args: ["--threads", "1"],
    ...(program === undefined ? {} : { program }),
  });
  const request = (token: string) => writeRequest("GET /plants", { token });
  await compareTimes(service.port, { any: () => request(makeToken()) }, warmUpRounds, dice);
  const kinds = Object.entries(tokens).map(([name, texts]): [string, Kind] => {
    return [name, (turn) => request(texts[turn % texts.length] ?? "")];
  });
  // Waited for here, because the service goes when this function ends.
  return await compareTimes(service.port, Object.fromEntries(kinds), rounds, dice);
}
