/**
 * A running service under generated requests: a thousand at a time, over connections that stay
 * open. Tells which answers were wrong, the first of them with its request made as small as
 * possible, and whether the garden holds what the answers said.
 */
import fc, { type Arbitrary } from "fast-check";
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import type { Trial } from "../proof.ts";
import { AnswerJudge, headerOf } from "./answer-judge.ts";
import { ClientPool, type Outgoing } from "./client-pool.ts";
import { type GeneratedRequest, requestsFor, type TokenKind } from "./request-generator.ts";

const connectionsCount = 64;
const shrinkMs = 20_000;
const faultsMax = 5;

export class GeneratedTrial {
  readonly service: RunningService;
  readonly #clients: ClientPool;
  readonly #tokens: Readonly<Record<TokenKind, string>>;
  readonly #requests: Arbitrary<GeneratedRequest>;
  readonly #judge: AnswerJudge;

  private constructor(service: RunningService, port: number, readToken: string, document: unknown) {
    this.service = service;
    this.#clients = new ClientPool(port, connectionsCount);
    this.#tokens = { write: service.token, read: readToken, unknown: "plant_unknown", none: "" };
    this.#requests = requestsFor(document);
    this.#judge = new AnswerJudge(document);
  }

  /** `standIn`, if given, is the port of another server, which stands before the service. */
  static async start(
    options: { database?: string; standIn?: (service: RunningService) => Promise<number> } = {},
  ): Promise<GeneratedTrial> {
    const { database, standIn } = options;
    const service = await startService(database === undefined ? {} : { database });
    const made = await runProgram(["token", "create", "gardener", "--scope", "read"], {
      PLANTSTORE_DATABASE: service.database,
    });
    const document = await (await service.call("GET /openapi.json")).json();
    const port = (await standIn?.(service)) ?? service.port;
    return new GeneratedTrial(service, port, made.out.trim(), document);
  }

  /** So many requests, the same for the same seed. */
  async run(seed: number, count: number): Promise<Trial> {
    const requests = fc.sample(this.#requests, { seed, numRuns: count });
    const balance = new Balance();
    const figures: Record<string, number> = { requests: count };
    const faults: string[] = [];
    const outgoing = requests.map((request) => this.#render(request));
    const putOff = await this.#clients.sendPatiently(outgoing, (index, outcome) => {
      const request = requests[index] as GeneratedRequest;
      const status = outcome instanceof NoResponse ? "unanswered" : `of ${outcome.status}`;
      figures[status] = (figures[status] ?? 0) + 1;
      const fault = this.#judge.findFault(request, outcome);
      if (fault !== undefined) faults.push(`${fault} — ${this.#show(request)}`);
      if (!(outcome instanceof NoResponse)) balance.note(request, outcome);
    });
    if (putOff > 0) figures["put off by overload"] = putOff;
    const isShrinkable = faults.length > 0;
    faults.push(...(await this.#settle(balance)), ...this.#readLog());
    if (isShrinkable) {
      faults.unshift(await this.#shrink(seed, count));
      await this.#settle(new Balance());
    }
    return { faults: faults.slice(0, faultsMax), figures };
  }

  async stop(): Promise<void> {
    this.#clients.close();
    await this.service[Symbol.asyncDispose]();
  }

  #render({ method, target, token, headers, body, isChunked }: GeneratedRequest): Outgoing {
    const text = body === undefined ? undefined : Buffer.from(body);
    const lines = [`${method} ${target} HTTP/1.1`, "Host: plants.example", ...headers];
    if (token !== "none") lines.push(`Authorization: Bearer ${this.#tokens[token]}`);
    if (text)
      lines.push(isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${text.length}`);
    const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    const size = Buffer.from(`${text?.length.toString(16)}\r\n`);
    const framed =
      text && isChunked
        ? [...(text.length > 0 ? [size, text, Buffer.from("\r\n")] : []), Buffer.from("0\r\n\r\n")]
        : [text ?? Buffer.alloc(0)];
    return { bytes: Buffer.concat([head, ...framed]), isHead: method === "HEAD" };
  }

  #show(request: GeneratedRequest): string {
    const text = this.#render(request).bytes.toString("latin1", 0, 1_000);
    return JSON.stringify(text).replaceAll(/plant_\w{49}/g, `<${request.token} token>`);
  }

  /**
   * Sends the same requests one by one until one fails again, and looks for a smaller one that
   * does.
   */
  async #shrink(seed: number, count: number): Promise<string> {
    const property = fc.asyncProperty(this.#requests, async (request) => {
      let fault: string | undefined;
      await this.#clients.sendPatiently([this.#render(request)], (_, outcome) => {
        fault = this.#judge.findFault(request, outcome);
      });
      return fault === undefined;
    });
    const found = await fc.check(property, {
      seed,
      numRuns: count,
      interruptAfterTimeLimit: shrinkMs,
    });
    const [smallest] = found.counterexample ?? [];
    if (!smallest) return "none of the requests fails alone";
    return `smallest after ${found.numShrinks} steps: ${this.#show(smallest)}`;
  }

  /** A million lines would fill the memory, so they are forgotten. */
  #readLog(): string[] {
    const written = this.service.output();
    const errors = written.out.match(/^.*"level":"error".*$/gm) ?? [];
    written.out = "";
    return errors.map((line) => `logged: ${line}`);
  }

  /** Compares the garden with what the answers said, and empties it for the next run. */
  async #settle(balance: Balance): Promise<string[]> {
    const response = await this.service.call("GET /plants?fields=id");
    const ids = [...(await response.text()).matchAll(/"id":(-?\d+)/g)].map(([, id]) => String(id));
    const deletions = ids.map((id) => this.#render({ ...deletion, target: `/plants/${id}` }));
    const faults = balance.audit(new Set(ids));
    await this.#clients.sendPatiently(deletions, (index, outcome) => {
      if (outcome instanceof NoResponse || outcome.status !== 204) {
        faults.push(`plant ${ids[index]} cannot be deleted: ${outcome}`);
      }
    });
    return faults;
  }
}

const deletion: GeneratedRequest = {
  operation: undefined,
  method: "DELETE",
  target: "",
  token: "write",
  headers: [],
  body: undefined,
  isChunked: false,
  expected: [204],
  fields: undefined,
};

/** How often each id was created and deleted, as the answers have it. */
class Balance {
  readonly #counts = new Map<string, number>();

  note({ method, target }: GeneratedRequest, answer: RawResponse): void {
    const isCreated = answer.status === 201 && !headerOf(answer, "idempotency-replayed");
    const address = isCreated ? headerOf(answer, "location") : target;
    if (!isCreated && (answer.status !== 204 || method !== "DELETE")) return;
    const id = String(address?.split("/").at(-1)?.split("?")[0]);
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + (isCreated ? 1 : -1));
  }

  audit(listed: ReadonlySet<string>): string[] {
    const all = new Set([...listed, ...this.#counts.keys()]);
    return [...all]
      .filter((id) => (this.#counts.get(id) ?? 0) !== (listed.has(id) ? 1 : 0))
      .map((id) => {
        const more = this.#counts.get(id) ?? 0;
        const state = listed.has(id) ? "listed" : "not listed";
        return `plant ${id} is ${state}, and was created ${more} times more than deleted`;
      });
  }
}
