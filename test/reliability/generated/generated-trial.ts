/**
 * The rows of the contract against the real program, with random variations. Harmless ones, such
 * as chunks in place of a length, change no result. After any other, responses are as documented,
 * and none is a 5xx.
 */
import fc from "fast-check";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import type { Row } from "../../../src/check/row.ts";
import { contract } from "../../../src/check/run-check.ts";
import { runRow, Skipped } from "../../../src/check/run-row.ts";
import { Service, type ServiceResponse } from "../../../src/check/service.ts";
import { TestGardens, type Tokens } from "../../../src/check/test-gardens.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { type Document, DocumentedAnswers } from "../../documented-answers.ts";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import type { Trial } from "../proof.ts";
import { type Outgoing, type Variation, variations } from "./variations.ts";

const lanesCount = 4;
const retriesMax = 60;
const anyStatus = { status: Array.from({ length: 400 }, (_, index) => 100 + index) };
const rows = contract.filter(({ isSlow }) => !isSlow);

export class GeneratedTrial {
  private constructor(
    readonly service: RunningService,
    readonly lanes: readonly Lane[],
  ) {}

  static async start(options: Parameters<typeof startService>[0] = {}): Promise<GeneratedTrial> {
    const service = await startService(options);
    const document = await (await service.call("GET /openapi.json")).json();
    const storage = await openStorage(service.database, { isServing: false });
    const issue = async (user: string, scope?: "read") =>
      (await issueToken(storage, { user, ...(scope && { scope }) }, Date.now())).token;
    const lanes: Lane[] = [];
    for (let number = 1; number <= lanesCount; number++) {
      const [ann, bob] = [`ann-${number}`, `bob-${number}`];
      const tokens = {
        write: await issue(ann),
        second: await issue(bob),
        read: await issue(ann, "read"),
      };
      lanes.push(new Lane(service.url, tokens, document));
    }
    await storage.close();
    return new GeneratedTrial(service, lanes);
  }

  /** Runs so many rows. They follow from the seed. */
  async run(seed: number, count: number): Promise<Trial> {
    const share = Math.ceil(count / this.lanes.length);
    const runs = this.lanes.map((lane, index) => lane.run(seed * lanesCount + index, share));
    const faults = (await Promise.all(runs)).flat();
    // The log would fill the memory of this process.
    const written = this.service.output();
    faults.push(...(written.out.match(/^.*"level":"error".*$/gm) ?? []));
    written.out = "";
    const requests = this.lanes.reduce((sum, lane) => sum + lane.takeCount(), 0);
    return { faults, figures: { rows: share * this.lanes.length, requests } };
  }

  async stop(): Promise<void> {
    await this.service[Symbol.asyncDispose]();
  }
}

/** One row after the other, in two gardens of its own. */
class Lane extends Service {
  readonly #tokens: Tokens;
  readonly #document: Document;
  readonly #documented: DocumentedAnswers;
  #variation: Variation | undefined;
  #faults: string[] = [];
  #requests = 0;

  constructor(url: string, tokens: Tokens, document: Document) {
    super(url, new AbortController().signal);
    this.#tokens = tokens;
    this.#document = document;
    this.#documented = new DocumentedAnswers(document);
  }

  takeCount(): number {
    const requests = this.#requests;
    this.#requests = 0;
    return requests;
  }

  async run(seed: number, numRuns: number): Promise<string[]> {
    const gardens = new TestGardens(this, this.#tokens);
    await gardens.open();
    const property = fc.asyncProperty(fc.constantFrom(...rows), variations, async (row, how) => {
      this.#faults = [];
      this.#variation = how;
      await this.#runRow(row, how, gardens);
      this.#variation = undefined;
      await gardens.cleanUp();
      if (this.#faults.length > 0) throw new Error(this.#faults.join("\n"));
    });
    const details = await fc.check(property, { seed, numRuns, endOnFailure: false });
    this.#variation = undefined;
    return details.failed ? [fc.defaultReportMessage(details) as string] : [];
  }

  /** Where something was changed, the row no longer says what comes. */
  async #runRow(row: Row, { isHarmless }: Variation, gardens: TestGardens): Promise<void> {
    const steps = row.steps.map(([sent]) => [sent, anyStatus] as const);
    const varied = isHarmless ? row : { ...row, steps };
    await runRow(varied, { service: this, gardens, isSlow: false }).catch((error) => {
      if (!(error instanceof Skipped)) this.#faults.push(`${error}`);
    });
  }

  /** Again, if the service is too busy. */
  override async send(
    request: string,
    parts: { headers?: Outgoing["headers"]; body?: Buffer | undefined } = {},
  ): Promise<ServiceResponse> {
    const [method = "", target = ""] = request.split(" ");
    const plain: Outgoing = { method, target, headers: parts.headers ?? {}, body: parts.body };
    const sent = this.#variation?.apply(plain) ?? plain;
    for (let tries = 0; ; tries++) {
      const { headers, body } = sent;
      const response = await super.send(`${sent.method} ${sent.target}`, {
        ...parts,
        headers,
        body,
      });
      this.#requests++;
      const isBusy = response.status === 503 && response.header("Retry-After") !== undefined;
      if (isBusy && tries < retriesMax) {
        await Bun.sleep(500);
        continue;
      }
      const fault = this.#findFault(sent, response);
      if (fault !== undefined)
        this.#faults.push(`${fault}, to ${response.request.slice(0, 2_000)}`);
      return response;
    }
  }

  #findFault({ method, target, headers, body }: Outgoing, response: ServiceResponse) {
    const { status, text } = response;
    if (status >= 500) return `${status}: ${text}`;
    // The runtime refuses what isn't HTTP.
    if (response.isFromProxy) return status < 400 ? "there is no X-Request-Id" : undefined;
    const [path = "", query] = target.split("?");
    const template = Object.keys(this.#document.paths).find((each) =>
      new RegExp(`^${each.replace(/\{\w+\}/g, "[^/]+")}$`).test(path),
    );
    const operation = this.#document.paths[template ?? ""]?.[method.toLowerCase()];
    if (template === undefined || operation === undefined) return undefined;
    const answer = { status, header: (name: string) => response.header(name), text };
    const fields = new URLSearchParams(query).get("fields") ?? undefined;
    const fault = this.#documented.findFault(template, method.toLowerCase(), answer, fields);
    const schema = operation.requestBody?.content["application/json"]?.schema;
    if (fault !== undefined || status >= 300 || schema === undefined) return fault;
    if (headers["Transfer-Encoding"] !== undefined) return undefined;
    return this.#documented.findMismatch(schema, JSON.parse(String(body)));
  }
}
