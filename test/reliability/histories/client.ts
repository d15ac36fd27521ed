/** Sends one call after the other to a garden, and records results and times. */
import { KeptConnection, Unanswered } from "../kept-connection.ts";
import type { RestartingService } from "../restarting-service.ts";
import type { Deployment, FreshGarden } from "./deployment.ts";
import {
  type Call,
  isWrite,
  type List,
  type Operation,
  type Result,
  type Seen,
} from "./history.ts";
import type { Dice } from "./plan.ts";
import { readResult, readSeen, renderRequest } from "./wire-form.ts";

/** Shared by the clients of a garden. */
export interface Notebook extends FreshGarden {
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
  readonly #deployment: Deployment;
  readonly #instances: readonly RestartingService[];
  readonly #notebook: Notebook;
  readonly #dice: Dice;
  /** By port. */
  readonly #connections = new Map<number, Used>();

  constructor(
    name: string,
    deployment: Deployment,
    instances: readonly RestartingService[],
    notebook: Notebook,
    dice: Dice,
  ) {
    this.#name = name;
    this.#deployment = deployment;
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
    const { instance, port, connection } = await this.#connect();
    const who = `${this.#name} at ${port}`;
    const isKilled = () => instance.process?.port !== port;
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
      const isExpected = error instanceof Unanswered && isKilled();
      if (!isExpected) this.#notebook.faults.push(`${who}, ${call.kind}: ${error}`);
    }
    const endedAtMs = isKilled()
      ? await this.#deployment.endOf(port, instance)
      : Number.POSITIVE_INFINITY;
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
  async #connect() {
    for (;;) {
      const instance = this.#instances[this.#dice(this.#instances.length)] as RestartingService;
      const { port } = instance;
      const connection = port && (await this.#reach(port).catch(() => undefined));
      if (connection) return { instance, port, connection };
      await Bun.sleep(pauseWhileDownMs);
    }
  }

  async #reach(port: number): Promise<KeptConnection> {
    const usedAtMs = performance.now();
    const known = this.#connections.get(port);
    const isGood = known && !known.connection.isOver && usedAtMs - known.usedAtMs < idleMaxMs;
    const isKept = isGood && this.#dice(6) > 0;
    if (!isKept) known?.connection.close();
    const connection = isKept
      ? known.connection
      : await KeptConnection.open({ port, isSecure: false });
    this.#connections.set(port, { connection, usedAtMs });
    return connection;
  }
}
