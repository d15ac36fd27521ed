/** Sends one call after the other to a garden, and records results and times. */
import { KeptConnection, Unanswered } from "../kept-connection.ts";
import type { Instance, Life } from "./deployment.ts";
import {
  type Call,
  type History,
  isWrite,
  type List,
  type Operation,
  type Result,
  type Seen,
} from "./history.ts";
import type { Dice } from "./plan.ts";
import { readResult, readSeen, renderRequest } from "./wire-form.ts";

/** Shared by the clients of a garden. */
export interface Notebook extends History {
  readonly token: string;
  readonly operations: Operation[];
  /** Of plants that were created. */
  readonly seenIds: bigint[];
  /** The entity tags that clients read, the latest last. */
  readonly seen: Seen[];
  /** What a history cannot contain, such as a 500. */
  readonly faults: string[];
}

const pauseWhileDownMs = 2;
const walkPagesMax = 12;
/** Shorter than the service keeps an idle connection. */
const idleMaxMs = 5_000;
/** Ends within the first line. */
const firstPieceCharacters = 9;

interface Used {
  readonly connection: KeptConnection;
  readonly usedAtMs: number;
}

export class Client {
  readonly #name: string;
  readonly #instances: readonly Instance[];
  readonly #notebook: Notebook;
  readonly #dice: Dice;
  readonly #connections = new Map<Life, Used>();

  constructor(name: string, instances: readonly Instance[], notebook: Notebook, dice: Dice) {
    this.#name = name;
    this.#instances = instances;
    this.#notebook = notebook;
    this.#dice = dice;
  }

  async run(calls: Iterable<Call>): Promise<void> {
    for (const call of calls) {
      if (call.kind === "list" && call.isWalk) await this.#walk(call);
      else await this.#ask(call);
    }
    for (const { connection } of this.#connections.values()) connection.close();
  }

  /** Follows the links to the end, or for a while. */
  async #walk(first: List): Promise<void> {
    let page = first;
    for (let pages = 0; pages < walkPagesMax; pages++) {
      const result = await this.#ask(page);
      if (result?.kind !== "listed" || !result.next) return;
      page = { ...first, ...result.next };
    }
  }

  /** After an unknown outcome, a read or a create with a key is sent again. */
  async #ask(call: Call): Promise<Result | undefined> {
    const { operations, seenIds, faults } = this.#notebook;
    for (;;) {
      const operation = await this.#try(call);
      const { result } = operation;
      if (result || isWrite(call)) operations.push(operation);
      if (result?.kind === "created") seenIds.push(result.id);
      const isSafe = !isWrite(call) || (call.kind === "create" && call.key !== undefined);
      if (result || !isSafe || faults.length > 0) return result;
    }
  }

  async #try(call: Call): Promise<Operation> {
    const { instance, life, connection } = await this.#connect();
    const who = `${this.#name} at ${instance.name}`;
    const text = renderRequest(call, this.#notebook.token);
    const sent = this.#dice(4) === 0 ? firstPieceCharacters : 0;
    if (sent > 0) {
      // The service sees the connection as readable before the request is complete.
      connection.sendRest(text.slice(0, sent));
      await Bun.sleep(0);
    }
    const calledAtMs = performance.now();
    try {
      const response = await connection.ask(text.slice(sent));
      const endedAtMs = performance.now();
      const result = readResult(call, response);
      const seen = readSeen(call, response);
      if (seen) this.#noteSeen(seen, who);
      if (result) return { who, call, result, calledAtMs, endedAtMs };
    } catch (error) {
      const isExpected = error instanceof Unanswered && life.isKilled;
      if (!isExpected) this.#notebook.faults.push(`${who}, ${call.kind}: ${error}`);
    }
    const endedAtMs = life.isKilled ? await life.endedAtMs : Number.POSITIVE_INFINITY;
    return { who, call, result: undefined, calledAtMs, endedAtMs };
  }

  /** The same content has the same tag, and other content another one. */
  #noteSeen(seen: Seen, who: string): void {
    const { name, tag, entityTag } = seen;
    const isSame = (other: Seen) => other.name === name && other.tag === tag;
    const isMixed = (other: Seen) => isSame(other) !== (other.entityTag === entityTag);
    if (!/^"[^"]+"$/.test(entityTag) || this.#notebook.seen.some(isMixed)) {
      this.#notebook.faults.push(`${who}: ${name} has the entity tag ${entityTag}`);
    }
    this.#notebook.seen.push(seen);
  }

  /** To an instance that is up, over a kept connection or, now and then, a new one. */
  async #connect(): Promise<{ instance: Instance; life: Life; connection: KeptConnection }> {
    for (;;) {
      const instance = this.#instances[this.#dice(this.#instances.length)] as Instance;
      const { life } = instance;
      if (life) {
        const connection = await this.#reach(life).catch(() => undefined);
        if (connection) return { instance, life, connection };
      }
      await Bun.sleep(pauseWhileDownMs);
    }
  }

  async #reach(life: Life): Promise<KeptConnection> {
    const usedAtMs = performance.now();
    const known = this.#connections.get(life);
    const isGood = known && !known.connection.isOver && usedAtMs - known.usedAtMs < idleMaxMs;
    if (isGood && this.#dice(6) > 0) {
      this.#connections.set(life, { ...known, usedAtMs });
      return known.connection;
    }
    known?.connection.close();
    const connection = await KeptConnection.open(life);
    this.#connections.set(life, { connection, usedAtMs });
    return connection;
  }
}
