/** Sends calls to a garden, one after the other, and records responses and times. */
import type { LoggedEvent } from "../audit.ts";
import type { Deployment, GardenToken, RestartingService } from "../deployment.ts";
import { KeptConnection, type RawResponse, Unanswered, writeRequest } from "../kept-connection.ts";
import { readList } from "../ledger.ts";
import { type Call, type List, renderEvent, type Seen } from "./garden-model.ts";
import type { Operation } from "./linearization.ts";

export type Dice = (sides: number) => number;

/** What the clients of one garden share. */
export interface Notebook {
  /** Of users who share the garden. */
  readonly tokens: readonly GardenToken[];
  readonly operations: Operation[];
  /** Of plants that were created. */
  readonly seenIds: bigint[];
  /** The entity tags that clients read, the latest last. */
  readonly seen: Seen[];
  /** What a history cannot contain, such as a hang. */
  readonly faults: string[];
}

/** Of a list whose links are followed. */
const pagesMax = 12;
const pauseWhileDownMs = 2;

export class Client {
  #reached: { instance: RestartingService; port: number; connection: KeptConnection } | undefined;

  constructor(
    readonly name: string,
    readonly deployment: Deployment,
    readonly notebook: Notebook,
    readonly dice: Dice,
    readonly instances = deployment.instances,
  ) {}

  async run(calls: Iterable<Call>): Promise<void> {
    for (const call of calls) {
      let page: Call | undefined = call;
      for (let pages = 0; page && pages < pagesMax; pages++) {
        const response: string = await this.#ask(page);
        const next: string | undefined = /^200 next (-?\d+) /.exec(response)?.[1];
        page = next ? { ...(call as List), after: BigInt(next) } : undefined;
      }
    }
    this.#reached?.connection.close();
  }

  /** After an unknown outcome, a read or a create with a key is sent again. */
  async #ask(call: Call): Promise<string> {
    const { operations, seenIds, faults } = this.notebook;
    const isRead = !["create", "put", "patch", "delete"].includes(call.kind);
    const isSafe = isRead || (call.kind === "create" && call.key !== undefined);
    for (;;) {
      const operation = await this.#send(call);
      const { response } = operation;
      if (response || !isRead) operations.push(operation);
      const created = /^201 \/plants\/(-?\d+) /.exec(response ?? "")?.[1];
      if (created) seenIds.push(BigInt(created));
      if (response || !isSafe || faults.length > 0) return response ?? "";
    }
  }

  async #send(call: Call): Promise<Operation> {
    const { tokens, seen, faults } = this.notebook;
    const { user, token } = tokens[this.dice(tokens.length)] as GardenToken;
    const { instance, port, connection } = await this.#reach();
    const isKilled = () => instance.process?.port !== port;
    const operation = { who: `${this.name} at ${port}`, user, call, calledAtMs: performance.now() };
    try {
      const raw = await connection.ask(writeCall(call, token));
      const endedAtMs = performance.now();
      const entityTag = raw.headers.get("etag");
      if (entityTag && "id" in call && call.id !== undefined && call.kind !== "create") {
        seen.push({ id: call.id, ...JSON.parse(`${raw.body}`), entityTag });
      }
      const response = readResponse(call, raw);
      if (raw.status !== 503) return { ...operation, response, endedAtMs };
    } catch (error) {
      const isExpected = error instanceof Unanswered && isKilled();
      if (!isExpected) faults.push(`${operation.who}, ${call.kind}: ${error}`);
    }
    let endedAtMs = Number.POSITIVE_INFINITY;
    // On PostgreSQL, a statement that was sent may outlive its client.
    if (isKilled() && this.deployment.engine === "sqlite") {
      await instance.exits.get(port);
      endedAtMs = performance.now();
    }
    return { ...operation, response: undefined, endedAtMs };
  }

  /** An instance that is up, over the last connection or, now and then, a new one. */
  async #reach() {
    const reached = this.#reached;
    if (reached && !reached.connection.isOver && this.dice(3) > 0) return reached;
    reached?.connection.close();
    for (;;) {
      const instance = this.instances[this.dice(this.instances.length)] as RestartingService;
      const { port } = instance;
      const connection = port && (await KeptConnection.open({ port }).catch(() => undefined));
      if (connection) {
        this.#reached = { instance, port, connection };
        return this.#reached;
      }
      await Bun.sleep(pauseWhileDownMs);
    }
  }
}

/** A call as HTTP, by docs/interface.md. */
function writeCall(call: Call, token: string): string {
  const headers: Record<string, string> = {};
  if ("key" in call) headers["Idempotency-Key"] = call.key;
  if ("ifMatch" in call && call.ifMatch) {
    headers["If-Match"] = call.ifMatch === "*" ? "*" : call.ifMatch.entityTag;
  }
  if ("isForNew" in call) headers["If-None-Match"] = "*";
  const write = (line: string, body?: string) => writeRequest(line, { token, headers, body });
  switch (call.kind) {
    case "create":
    case "put": {
      const { kind, id, name, tag } = call;
      const content = JSON.stringify({ name, tag });
      const body = id === undefined ? content : `{"id":${id},${content.slice(1)}`;
      return write(kind === "create" ? "POST /plants" : `PUT /plants/${id}`, body);
    }
    case "patch":
      return write(`PATCH /plants/${call.id}`, JSON.stringify({ name: call.name, tag: call.tag }));
    case "delete":
      return write(`DELETE /plants/${call.id}`);
    case "get":
      return write(`GET /plants/${call.id}`);
    case "count":
      return write("GET /me");
    case "events":
      return write(`GET /events?limit=1000&after=${call.after}`);
    case "list": {
      const { include, limit, after } = call;
      const given = Object.entries({ include, limit, after }).filter(
        ([, value]) => value !== undefined,
      );
      return write(`GET /plants?${given.map(([name, value]) => `${name}=${value}`).join("&")}`);
    }
  }
}

/** A response as the model has it. */
function readResponse(call: Call, { status, headers, body }: RawResponse): string {
  if (status >= 400) return String(status);
  const text = body.toString();
  if (call.kind === "events") return `${status} ${readEvents(text, call.after).join("\n")}`;
  const link = headers.get("link");
  const parts = [
    headers.get("location"),
    headers.get("idempotency-replayed") && "replayed",
    link && `next ${/after=(-?\d+).*; rel="next"$/.exec(link)?.[1]}`,
    call.kind === "count" ? JSON.parse(text)[call.of] : text,
  ];
  return [status, ...parts.filter((part) => part !== null && part !== "")].join(" ");
}

/** As the model has them: in order, and without their numbers. */
function readEvents(body: string, after: number): string[] {
  return readList<LoggedEvent>(body).map(({ seq, type, user, plant }, index) =>
    seq === after + index + 1 ? renderEvent(type, user, plant) : `${seq} after a gap`,
  );
}
