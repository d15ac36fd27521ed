/**
 * The rows of the contract against the real program, with a random change in each of their
 * requests. Whatever comes back is as documented, and none of it is a 5xx.
 */
import fc from "fast-check";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { contract } from "../../src/check/run-check.ts";
import { runRow, Skipped } from "../../src/check/run-row.ts";
import { Service, type ServiceResponse } from "../../src/check/service.ts";
import { TestGardens } from "../../src/check/test-gardens.ts";
import { openStorage } from "../../src/storage/open.ts";
import { type Document, DocumentedAnswers } from "../../test/documented-responses.ts";
import { type RunningService, startService } from "../../test/end-to-end/running-service.ts";
import type { Trial } from "../proof.ts";
import { type Outgoing, type Variation, variations } from "./variations.ts";

const retriesMax = 60;
/** Once a request is changed, the row no longer says what to expect. */
const anyStatus = { status: Array.from({ length: 400 }, (_, index) => 100 + index) };
const rows = contract
  .filter(({ isSlow }) => !isSlow)
  .map((row) => ({ ...row, steps: row.steps.map(([sent]) => [sent, anyStatus] as const) }));

export class GeneratedTrial {
  private constructor(
    readonly service: RunningService,
    readonly document: Document,
  ) {}

  static async start(options: Parameters<typeof startService>[0] = {}): Promise<GeneratedTrial> {
    const service = await startService(options);
    return new GeneratedTrial(service, await (await service.call("GET /openapi.json")).json());
  }

  /** Runs this many rows in two new gardens. The seed decides which rows. */
  async run(seed: number, count: number): Promise<Trial> {
    const storage = await openStorage(this.service.database, { isServing: false });
    const issue = async (user: string, scope: "read" | "write" = "write") =>
      (await issueToken(storage, { user: `${user}-${seed}`, scope }, Date.now())).token;
    const tokens = {
      write: await issue("ann"),
      second: await issue("bob"),
      read: await issue("ann", "read"),
    };
    await storage.close();
    const service = new VaryingService(this.service.url, this.document);
    const gardens = new TestGardens(service, tokens);
    await gardens.open();
    const property = fc.asyncProperty(fc.constantFrom(...rows), variations, async (row, vary) => {
      service.faults = [];
      service.vary = vary;
      await runRow(row, { service, gardens, isSlow: false }).catch((error) => {
        if (!(error instanceof Skipped)) service.faults.push(`${error}`);
      });
      service.vary = undefined;
      await gardens.empty();
      if (service.faults.length > 0) throw new Error(service.faults.join("\n"));
    });
    const details = await fc.check(property, { seed, numRuns: count, endOnFailure: false });
    const faults = details.failed ? [fc.defaultReportMessage(details) as string] : [];
    const written = this.service.output();
    faults.push(...(written.out.match(/^.*"level":"error".*$/gm) ?? []));
    // The log would fill the memory of this process.
    written.out = "";
    return { faults, figures: { rows: count } };
  }

  async stop(): Promise<void> {
    await this.service[Symbol.asyncDispose]();
  }
}

/** Changes each request, and compares each response with the document. */
class VaryingService extends Service {
  vary: Variation | undefined;
  faults: string[] = [];
  readonly #document: Document;
  readonly #documented: DocumentedAnswers;

  constructor(url: string, document: Document) {
    super(url, new AbortController().signal);
    this.#document = document;
    this.#documented = new DocumentedAnswers(document);
  }

  /** Again, if the service is too busy. */
  override async send(
    request: string,
    parts: { headers?: Outgoing["headers"]; body?: Buffer | undefined } = {},
  ): Promise<ServiceResponse> {
    const [method = "", target = ""] = request.split(" ");
    const plain: Outgoing = { method, target, headers: parts.headers ?? {}, body: parts.body };
    const sent = this.vary?.(plain) ?? plain;
    for (let tries = 0; ; tries++) {
      const response = await super.send(`${sent.method} ${sent.target}`, { ...parts, ...sent });
      const isBusy = response.status === 503 && response.header("Retry-After") !== undefined;
      if (!isBusy || tries === retriesMax) {
        const fault = this.#findFault(sent, response);
        if (fault) this.faults.push(`${fault}, to ${response.request.slice(0, 2_000)}`);
        return response;
      }
      await Bun.sleep(500);
    }
  }

  #findFault({ method, target, headers, body }: Outgoing, response: ServiceResponse) {
    const { status, text } = response;
    if (status >= 500) return `${status}: ${text}`;
    // The runtime refuses what isn't HTTP.
    if (response.isFromProxy) return status < 400 ? "there is no X-Request-Id" : undefined;
    const [path = ""] = target.split("?");
    const template = Object.keys(this.#document.paths).find((each) =>
      new RegExp(`^${each.replace(/\{\w+\}/g, "[^/]+")}$`).test(path),
    );
    const operation = this.#document.paths[template ?? ""]?.[method.toLowerCase()];
    if (template === undefined || operation === undefined) return undefined;
    const answer = { status, header: (name: string) => response.header(name), text };
    const fault = this.#documented.findFault(template, method.toLowerCase(), answer);
    const schema = operation.requestBody?.content["application/json"]?.schema;
    if (fault !== undefined || status >= 300 || schema === undefined) return fault;
    if (headers["Transfer-Encoding"] !== undefined) return undefined;
    // What is accepted fits the documented schema.
    return this.#documented.findMismatch(schema, JSON.parse(String(body)));
  }
}
