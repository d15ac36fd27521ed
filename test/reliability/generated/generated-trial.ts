/**
 * A running service under generated requests. Reports wrong responses, the first one with the
 * smallest request that has it, and whether the garden contains what the responses said.
 */
import fc, { type Arbitrary } from "fast-check";
import { NoResponse, type RawResponse } from "../../../src/check/wire.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { headerOf } from "../kept-connection.ts";
import type { Trial } from "../proof.ts";
import { ClientPool, type Outgoing } from "./client-pool.ts";
import { type GeneratedRequest, requestsFor, type TokenKind } from "./request-generator.ts";
import { ResponseRules } from "./response-rules.ts";

const connectionsCount = 64;
const shrinkMs = 20_000;
const faultsMax = 5;

export class GeneratedTrial {
  readonly service: RunningService;
  readonly #clients: ClientPool;
  readonly #tokens: Readonly<Record<TokenKind, string>>;
  readonly #requests: Arbitrary<GeneratedRequest>;
  readonly #rules: ResponseRules;

  private constructor(service: RunningService, readToken: string, document: unknown) {
    this.service = service;
    this.#clients = new ClientPool(service.port, connectionsCount);
    this.#tokens = { write: service.token, read: readToken, unknown: "plant_unknown", none: "" };
    this.#requests = requestsFor(document);
    this.#rules = new ResponseRules(document);
  }

  static async start(options: Parameters<typeof startService>[0] = {}): Promise<GeneratedTrial> {
    const service = await startService(options);
    const made = await runProgram(["token", "create", "gardener", "--scope", "read"], {
      PLANTSTORE_DATABASE: service.database,
    });
    const document = await (await service.call("GET /openapi.json")).json();
    return new GeneratedTrial(service, made.out.trim(), document);
  }

  /** The requests follow from the seed. */
  async run(seed: number, count: number): Promise<Trial> {
    const requests = fc.sample(this.#requests, { seed, numRuns: count });
    const balance = new Balance();
    const figures: Record<string, number> = { requests: count };
    const faults: string[] = [];
    const outgoing = requests.map((request) => this.#render(request));
    const refused = await this.#clients.send(outgoing, (index, outcome) => {
      const request = requests[index] as GeneratedRequest;
      const status = outcome instanceof NoResponse ? "without a response" : `of ${outcome.status}`;
      figures[status] = (figures[status] ?? 0) + 1;
      const fault = this.#rules.findFault(request, outcome);
      if (fault !== undefined) faults.push(`${fault} — ${this.#show(request)}`);
      if (!(outcome instanceof NoResponse)) balance.note(request, outcome);
    });
    if (refused > 0) figures["refused by overload"] = refused;
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

  /** Sends the same requests one by one until one fails again, and shrinks that one. */
  async #shrink(seed: number, count: number): Promise<string> {
    const property = fc.asyncProperty(this.#requests, async (request) => {
      let fault: string | undefined;
      await this.#clients.send([this.#render(request)], (_, outcome) => {
        fault = this.#rules.findFault(request, outcome);
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

  /** Clears the log, which would fill the memory of this process. */
  #readLog(): string[] {
    const written = this.service.output();
    const errors = written.out.match(/^.*"level":"error".*$/gm) ?? [];
    written.out = "";
    return errors.map((line) => `logged: ${line}`);
  }

  /** Compares the garden with the responses, and empties it for the next run. */
  async #settle(balance: Balance): Promise<string[]> {
    const response = await this.service.call("GET /plants?fields=id");
    const ids = [...(await response.text()).matchAll(/"id":(-?\d+)/g)].map(([, id]) => String(id));
    const deletions = ids.map((id) => this.#render({ ...deletion, target: `/plants/${id}` }));
    const faults = balance.audit(new Set(ids));
    await this.#clients.send(deletions, (index, outcome) => {
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

/** How often each id was created and deleted, according to the responses. */
class Balance {
  readonly #counts = new Map<string, number>();

  note({ method, target }: GeneratedRequest, response: RawResponse): void {
    // The results of many plants at once.
    if (method === "POST" && response.status === 200) {
      for (const [, id] of response.body.toString().matchAll(/^\{"status":201,"id":(-?\d+)\}$/gm)) {
        this.#counts.set(String(id), (this.#counts.get(String(id)) ?? 0) + 1);
      }
      return;
    }
    const isCreated = response.status === 201 && !headerOf(response, "idempotency-replayed");
    const address = isCreated ? headerOf(response, "location") : target;
    if (!isCreated && (response.status !== 204 || method !== "DELETE")) return;
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
