/**
 * In which schema the connections of a process find its tables: all of them in the same one, and
 * all that is in them.
 */
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { ConnectionLost, hasState } from "./failure.ts";
import { requireAllRows } from "./migrate.ts";

interface Schema {
  readonly id: string;
  readonly name: string;
}

export class Whereabouts {
  #known: Schema | undefined;

  /** Once the store is there. Before, another program's table may have looked like one of its. */
  async learn(client: Pick<ClientBase, "query">): Promise<void> {
    this.#known = await readSchemaOf(client);
  }

  /**
   * Fails if it is neither the schema that was found first nor one of its name. The search path of
   * a role can be changed while connections are open, and some of them would read and write in one
   * store, and some in another.
   */
  async requireSame(client: Pick<ClientBase, "query">): Promise<void> {
    const found = await readSchemaOf(client);
    this.#known ??= found;
    if (found?.id === this.#known?.id || found?.name === this.#known?.name) return;
    const where =
      found === undefined ? "to no store" : `to the schema ${JSON.stringify(found.name)}`;
    throw new PlantStoreError(
      "unavailable",
      `its search path leads ${where} now, and led to ${JSON.stringify(this.#known?.name)} at the start`,
    );
  }

  /** Fails unless it leads to all of the store that was opened, where one was. */
  async requireStore(client: Pick<ClientBase, "query">): Promise<void> {
    if (this.#known === undefined) return;
    await this.requireSame(client);
    await requireAllRows(client);
  }

  /** The same of a connection that was good once, with `ConnectionLost`: nobody uses it again. */
  async requireStill(client: Pick<ClientBase, "query">): Promise<void> {
    await this.requireStore(client).catch((cause) => {
      if (!(cause instanceof PlantStoreError)) throw cause;
      throw new ConnectionLost("It does not show all of the store.", { cause });
    });
  }
}

/** Absent where there are no tables yet, or the server does not tell. */
async function readSchemaOf(client: Pick<ClientBase, "query">): Promise<Schema | undefined> {
  try {
    // Not by to_regclass: it remembers that there was no table before another process made it.
    const { rows } = await client.query(
      `SELECT pg_namespace.oid::text AS id, nspname::text AS name FROM pg_catalog.pg_class
         JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
         WHERE relname = 'plants' AND relkind IN ('r', 'p')
           AND nspname = ANY (current_schemas(false))
         ORDER BY array_position(current_schemas(false), nspname) LIMIT 1`,
    );
    return rows[0];
  } catch (error) {
    // Another database may not know what is asked. That the time is over says nothing.
    if (hasState(error, "42", "0A")) return undefined;
    throw error;
  }
}
