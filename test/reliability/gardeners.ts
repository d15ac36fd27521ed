/**
 * Clients that create, delete and look without rest, each in its own way by chance, over HTTP and
 * over several instances. Every answer goes into the ledger.
 */
import { makeDice, spread } from "../dice.ts";
import type { RunningService } from "../end-to-end/running-service.ts";
import { type Ledger, type ListedPlant, tagOf } from "./ledger.ts";

/** A request that is not answered by then hangs. */
export const hangMs = 10_000;
const pauseMs = 10;
const pauseAfterFailureMs = 100;

export interface Instance {
  readonly service: Pick<RunningService, "call">;
  readonly token: string;
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** By instance, when the first write succeeded since it was last forgotten. */
export type FirstWrites = Map<Instance, number>;

export class Gardeners {
  readonly firstWrites: FirstWrites = new Map();
  longestMs = 0;
  readonly #instances: readonly Instance[];
  readonly #ledger: Ledger;
  readonly #working: Promise<void>[];
  #isStopping = false;

  constructor(instances: readonly Instance[], ledger: Ledger, count: number, seed: number) {
    this.#instances = instances;
    this.#ledger = ledger;
    this.#working = Array.from({ length: count }, (_, index) => this.#work(seed * 1_000 + index));
  }

  /** They settle what they can of what is open, and go. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#working);
  }

  async #work(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const own: ListedPlant[] = [];
    for (let count = 0; !this.#isStopping; count++) {
      const name = `${number}-${count}`;
      const victim = dice(3) === 0 ? own.splice(dice(own.length), 1)[0] : undefined;
      if (victim) await this.#remove(victim, dice);
      else {
        // Ids that are chosen are negative, so that none of them is assigned to somebody else.
        const chosen = dice(3) === 0 ? String(-number * 1_000_000 - count) : undefined;
        const id = await this.#create(name, chosen, dice(2) === 0, dice);
        if (id !== undefined) own.push({ id, name });
        if (id !== undefined && dice(4) === 0) await this.#look({ id, name }, dice);
      }
      await Bun.sleep(dice(2 * pauseMs));
    }
  }

  /** The id, if it was answered. Sent again until it is, where a key or an id makes that safe. */
  async #create(
    name: string,
    id: string | undefined,
    isKeyed: boolean,
    dice: (sides: number) => number,
  ): Promise<string | undefined> {
    const body = bodyOf(name, id);
    const headers: Record<string, string> = isKeyed ? { "Idempotency-Key": name } : {};
    for (let isFirst = true; ; isFirst = false) {
      this.#ledger.note(name, "open");
      const reply = await this.#send(dice, "POST /plants", { body, headers });
      const location = reply?.headers.get("location")?.split("/").at(-1);
      if (reply?.status === 201 && location) {
        this.#ledger.note(name, "there");
        this.#ledger.noteId(name, location);
        return location;
      }
      // Another plant has this id only if an earlier try, whose outcome was open, stored this one.
      if (reply?.status === 409 && id !== undefined && !isFirst && !isKeyed) {
        this.#ledger.note(name, "there");
        return id;
      }
      if (isUnchanged(reply) && isFirst) this.#ledger.note(name, "gone");
      const isWorthIt = this.#isUnavailable(reply, `create ${name}`);
      if (!isWorthIt || (!isKeyed && id === undefined)) return undefined;
      await Bun.sleep(pauseAfterFailureMs);
    }
  }

  async #remove(plant: ListedPlant, dice: (sides: number) => number): Promise<void> {
    for (let isFirst = true; ; isFirst = false) {
      this.#ledger.note(plant.name, "open");
      const reply = await this.#send(dice, `DELETE /plants/${plant.id}`);
      if (reply?.status === 204 || (reply?.status === 404 && !isFirst)) {
        this.#ledger.note(plant.name, "gone");
        return;
      }
      if (isUnchanged(reply) && isFirst) this.#ledger.note(plant.name, "there");
      if (!this.#isUnavailable(reply, `delete ${plant.name}`)) return;
      await Bun.sleep(pauseAfterFailureMs);
    }
  }

  /** What was answered is seen at once, whichever instance and server is asked. */
  async #look(plant: ListedPlant, dice: (sides: number) => number): Promise<void> {
    const after = BigInt(plant.id) - 1n;
    const reply = await this.#send(dice, `GET /plants?fields=id,name&limit=1&after=${after}`);
    if (reply?.status !== 200) this.#isUnavailable(reply, `look for ${plant.name}`);
    else if (!reply.text.includes(`"${plant.name}"`)) this.#ledger.fault(`not seen: ${plant.name}`);
  }

  /** Absent when there was no answer. */
  async #send(
    dice: (sides: number) => number,
    request: string,
    init: RequestInit = {},
  ): Promise<Reply | undefined> {
    const instance = this.#instances[dice(this.#instances.length)] as Instance;
    const startedAtMs = performance.now();
    try {
      const signal = AbortSignal.timeout(hangMs);
      const response = await instance.service.call(request, {
        ...init,
        token: instance.token,
        signal,
      });
      const { status, headers } = response;
      const isWrite = status === 201 || status === 204;
      if (isWrite && !this.firstWrites.has(instance)) {
        this.firstWrites.set(instance, performance.now());
      }
      return { status, headers, text: await response.text() };
    } catch (error) {
      const { name, message } = error as Error;
      this.#ledger.fault(`${request}: ${name === "TimeoutError" ? "it hung" : message}`);
      return undefined;
    } finally {
      this.longestMs = Math.max(this.longestMs, performance.now() - startedAtMs);
    }
  }

  /** In trouble with the database there is one answer, and any other is a fault. */
  #isUnavailable(reply: Reply | undefined, what: string): boolean {
    if (reply && reply.status !== 503) this.#ledger.fault(`${what}: ${reply.status} ${reply.text}`);
    return reply?.status === 503;
  }
}

/** What a create of this plant sends. */
export function bodyOf(name: string, id?: string): string {
  return `{"name":"${name}","tag":"${tagOf(name)}"${id === undefined ? "" : `,"id":${id}`}}`;
}

/** Every failure is a promise that nothing was done, but for the one that says otherwise. */
function isUnchanged(reply: Reply | undefined): boolean {
  return reply !== undefined && !reply.text.includes("outcome is unknown");
}
