/**
 * One client that does the same few things each time, one after the other, and notes every answer
 * in the ledger. In trouble it gets 503 or 507; anything else is a fault.
 */
import type { RunningService } from "../../end-to-end/running-service.ts";
import { type Ledger, readList } from "../ledger.ts";

const hangMs = 15_000;
const endMs = 5_000;

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export class Gardener {
  readonly #service: RunningService;
  readonly #token: string;
  readonly #ledger: Ledger;
  readonly faults: string[] = [];
  /** How often a write was refused, and how often it was done. */
  readonly figures = { refused: 0, done: 0 };

  constructor(service: RunningService, token: string, ledger: Ledger) {
    this.#service = service;
    this.#token = token;
    this.#ledger = ledger;
  }

  /** The plants are known by this word. */
  async tend(word: string): Promise<void> {
    const first = await this.create(`${word} 1`);
    await this.create(`${word} 2`);
    await this.create(`${word} of its own id`, { id: `-${word.length}` });
    const key = `${word}-keyed`;
    await this.create(key, { key });
    await this.create(key, { key });
    if (first !== undefined) await this.remove(`${word} 1`, first);
    await this.list();
  }

  /** The id, if it was answered. */
  async create(
    name: string,
    { id, key }: { id?: string; key?: string } = {},
  ): Promise<string | undefined> {
    const body = JSON.stringify({ name }).replace("}", id === undefined ? "}" : `,"id":${id}}`);
    const headers = key === undefined ? {} : { "Idempotency-Key": key };
    const before = this.#ledger.standingOf(name) ?? "gone";
    this.#ledger.note(name, "open");
    const reply = await this.#send("POST /plants", { body, headers });
    const location = reply?.headers.get("location")?.split("/").at(-1);
    if (reply?.status === 201 && location !== undefined) {
      this.#ledger.note(name, "there");
      this.#ledger.noteId(name, location);
      return location;
    }
    if (before === "there" || isUnchanged(reply)) this.#ledger.note(name, before);
    this.#judge(reply, `create ${name}`);
    return undefined;
  }

  async remove(name: string, id: string): Promise<void> {
    this.#ledger.note(name, "open");
    const reply = await this.#send(`DELETE /plants/${id}`);
    if (reply?.status === 204) return this.#ledger.note(name, "gone");
    if (isUnchanged(reply)) this.#ledger.note(name, "there");
    this.#judge(reply, `delete ${name}`);
  }

  /** Whether there was a list; if so, it keeps every promise. */
  async list(): Promise<boolean> {
    const reply = await this.#send("GET /plants?fields=id,name");
    if (reply?.status !== 200) {
      this.#judge(reply, "list");
      return false;
    }
    const faults = this.#ledger.audit(readList(reply.text));
    this.faults.push(...faults.map((fault) => `listed: ${fault}`));
    return true;
  }

  async isReady(): Promise<boolean> {
    return (await this.#send("GET /readyz"))?.status === 200;
  }

  /** Absent when there was no answer, which only a process that has ended may leave out. */
  async #send(request: string, init: RequestInit = {}): Promise<Reply | undefined> {
    try {
      const signal = AbortSignal.timeout(hangMs);
      const response = await this.#service.call(request, { ...init, token: this.#token, signal });
      const { status, headers } = response;
      if (request.startsWith("GET")) return { status, headers, text: await response.text() };
      this.figures[status < 300 ? "done" : "refused"]++;
      return { status, headers, text: await response.text() };
    } catch (error) {
      const { name, message } = error as Error;
      if (name === "TimeoutError") this.faults.push(`${request}: it hung`);
      else if (!(await this.#hasEnded())) this.faults.push(`${request}: no answer: ${message}`);
      return undefined;
    }
  }

  /** Its connections go a little sooner than the process. */
  #hasEnded(): Promise<boolean> {
    return Promise.race([
      this.#service.exited.then(() => true),
      Bun.sleep(endMs).then(() => false),
    ]);
  }

  #judge(reply: Reply | undefined, what: string): void {
    if (reply === undefined || reply.status === 503 || reply.status === 507) return;
    this.faults.push(`${what}: ${reply.status} ${reply.text}`);
  }
}

/** Every refusal is a promise that nothing was done, but for the one that says otherwise. */
function isUnchanged(reply: Reply | undefined): boolean {
  return reply !== undefined && !reply.text.includes("outcome is unknown");
}
