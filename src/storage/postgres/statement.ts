/**
 * Sends statements by name, so that the server parses and plans each once for a connection: a third
 * of its work for a group of lists.
 */
import type { ClientBase, QueryResult } from "pg";
import { hasState } from "./errors.ts";

/**
 * The connection has no such statement, or has it already: a pooler gave us the session of another.
 * Nothing was done.
 */
export const nameFailures = ["26000", "42P05"];

const named = new WeakSet<ClientBase>();
const names = new Map<string, string>();

/** For connections with our `plan_cache_mode`; most poolers drop such settings. */
export function allowNames(client: ClientBase): void {
  named.add(client);
}

/** The text must be one of few, because the server keeps them. */
export async function send(
  client: ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult> {
  const query = { text, values: [...values] };
  if (!named.has(client)) return client.query(query);
  try {
    return await client.query({ ...query, name: nameOf(text) });
  } catch (error) {
    if (hasState(error, ...nameFailures)) named.delete(client);
    throw error;
  }
}

/** A hash of the text, so that two versions behind one pooler never share a name. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `plantstore ${Bun.hash(text).toString(36)}`;
    names.set(text, name);
  }
  return name;
}
