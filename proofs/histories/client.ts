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

interface Reached {
  readonly instance: RestartingService;
  readonly port: number;
  readonly connection: KeptConnection;
}

/** Of a list whose links are followed. */
const pagesMax = 12;
const pauseWhileDownMs = 2;

export class Client {
  #reached: Reached | undefined;

  constructor(
    readonly options: {
      readonly name: string;
      readonly deployment: Deployment;
      readonly notebook: Notebook;
      readonly dice: Dice;
      /** By default all of the deployment. */
      readonly instances?: readonly RestartingService[];
    },
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
    const { operations, seenIds, faults } = this.options.notebook;
    const isRead = !["create", "put", "delete"].includes(call.kind);
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
    const { name, deployment, notebook, dice } = this.options;
    const { user, token } = notebook.tokens[dice(notebook.tokens.length)] as GardenToken;
    const { instance, port, connection } = await this.#reach();
    const who = `${name} at ${port}`;
    const isKilled = () => instance.process?.port !== port;
    const calledAtMs = performance.now();
    try {
      const response = await connection.ask(writeCall(call, token));
      const endedAtMs = performance.now();
      const entityTag = response.headers.get("etag");
      if (entityTag && (call.kind === "get" || call.kind === "put")) {
        notebook.seen.push({ id: call.id, ...JSON.parse(`${response.body}`), entityTag });
      }
      if (response.status !== 503) {
        return { who, user, call, response: readResponse(call, response), calledAtMs, endedAtMs };
      }
    } catch (error) {
      const isExpected = error instanceof Unanswered && isKilled();
      if (!isExpected) notebook.faults.push(`${who}, ${call.kind}: ${error}`);
    }
    let endedAtMs = Number.POSITIVE_INFINITY;
    // On PostgreSQL, a statement that was sent may outlive its client.
    if (isKilled() && deployment.engine === "sqlite") {
      await instance.exits.get(port);
      endedAtMs = performance.now();
    }
    return { who, user, call, response: undefined, calledAtMs, endedAtMs };
  }

  /** An instance that is up, over the last connection or, now and then, a new one. */
  async #reach(): Promise<Reached> {
    const { deployment, dice, instances = deployment.instances } = this.options;
    if (this.#reached && !this.#reached.connection.isOver && dice(3) > 0) return this.#reached;
    this.#reached?.connection.close();
    for (;;) {
      const instance = instances[dice(instances.length)] as RestartingService;
      const { port } = instance;
      const connection =
        port && (await KeptConnection.open({ port, isSecure: false }).catch(() => undefined));
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
  switch (call.kind) {
    case "create":
    case "put": {
      const { kind, id, name, tag } = call;
      const given = id === undefined ? "" : `"id":${id},`;
      const body = `{${given}"name":${JSON.stringify(name)},"tag":${JSON.stringify(tag)}}`;
      const line = kind === "create" ? "POST /plants" : `PUT /plants/${id}`;
      return writeRequest(line, { token, headers, body });
    }
    case "delete":
      return writeRequest(`DELETE /plants/${call.id}`, { token, headers });
    case "get":
      return writeRequest(`GET /plants/${call.id}`, { token });
    case "count":
      return writeRequest("GET /me", { token });
    case "events":
      return writeRequest(`GET /events?limit=1000&after=${call.after}`, { token });
    case "list": {
      const query = [
        ...(call.include ? [`include=${call.include}`] : []),
        ...(call.limit === undefined ? [] : [`limit=${call.limit}`]),
        ...(call.after === undefined ? [] : [`after=${call.after}`]),
      ];
      return writeRequest(`GET /plants?${query.join("&")}`, { token });
    }
  }
}

/** A response as the model has it. */
function readResponse(call: Call, response: RawResponse): string {
  const { status, headers } = response;
  if (status >= 400) return String(status);
  const body = response.body.toString();
  if (call.kind === "events") return [status, readEvents(body, call.after)].join(" ");
  const link = headers.get("link");
  const parts = [
    headers.get("location"),
    headers.get("idempotency-replayed") && "replayed",
    link && `next ${/after=(-?\d+).*; rel="next"$/.exec(link)?.[1]}`,
    call.kind === "count" ? JSON.parse(body)[call.of] : body,
  ];
  return [status, ...parts.filter((part) => part !== null && part !== "")].join(" ");
}

/** As the model has them: in order, and without their numbers. */
function readEvents(body: string, after: number): string {
  const events = readList<LoggedEvent>(body);
  const rendered = events.map(({ seq, type, user, plant }, index) =>
    seq === after + index + 1 ? renderEvent(type, user, plant) : `${seq} after a gap`,
  );
  return rendered.join("\n");
}
