/** Which of several copies of the same data is the newest. It does not know where they are. */
import { type ClientBase, DatabaseError } from "pg";
import { ConnectionLost, isLost } from "./failure.ts";

/** Of which data a server is a copy, and how many promotions they have seen. */
export interface Lineage {
  readonly cluster: string;
  readonly timeline: number;
  /** Since when this server runs. */
  readonly startedAt: string;
}

/** Absent where the server does not tell: another database, or a role that may not ask. */
export async function readLineage(client: Pick<ClientBase, "query">): Promise<Lineage | undefined> {
  try {
    const { rows } = await client.query(
      `SELECT system_identifier AS cluster, pg_walfile_name(pg_current_wal_lsn()) AS file,
           pg_postmaster_start_time()::text AS started_at
         FROM pg_control_system()`,
    );
    // The name of a file of the log begins with the timeline, in eight hexadecimal digits.
    return {
      cluster: String(rows[0]?.cluster),
      timeline: Number.parseInt(String(rows[0]?.file).slice(0, 8), 16),
      startedAt: String(rows[0]?.started_at),
    };
  } catch (error) {
    if (error instanceof DatabaseError && !isLost(error)) return undefined;
    throw error;
  }
}

/** Whether the other server was promoted from the same data after this one. */
export function isBehind(lineage: Lineage | undefined, other: Lineage | undefined): boolean {
  if (lineage === undefined || lineage.cluster !== other?.cluster) return false;
  return lineage.timeline < other.timeline;
}

/**
 * Fails with `ConnectionLost` if it is not the server that was found, or that one has started anew:
 * it may have been replaced meanwhile, which only a look at all hosts can tell.
 */
export async function requireSame(
  client: Pick<ClientBase, "query">,
  known: Lineage | undefined,
): Promise<void> {
  if (known !== undefined && (await readLineage(client))?.startedAt !== known.startedAt) {
    throw replaced;
  }
}

export const replaced = new ConnectionLost("Another server was promoted instead.", {
  cause: Object.assign(new Error("It is of an older timeline."), { code: "REPLACED" }),
});
