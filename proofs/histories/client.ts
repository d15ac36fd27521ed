/** Sends calls to a garden, one after the other, and records responses and times. */

import {
  type Call,
  type Plant,
  renderEvent,
  type Seen,
  type Tagged,
} from "../../testing/garden-model.ts";
import {
  KeptConnection,
  type RawResponse,
  Unanswered,
  writeRequest,
} from "../../testing/kept-connection.ts";
import { waitFor } from "../../testing/running-service.ts";
import type { LoggedEvent } from "../audit.ts";
import type { Deployment, GardenToken, RestartingService } from "../deployment.ts";
import { readList } from "../ledger.ts";
import type { Operation } from "./linearization.ts";

export type Dice = (sides: number) => number;

/** What the clients of one garden share. */
export interface Notebook {
  /** Of users who share the garden. */
  readonly tokens: readonly GardenToken[];
  readonly operations: Operation[];
  /** The entity tags that clients got, the latest last. */
  readonly seen: Seen[];
  /** What a history cannot contain, such as a hang. */
  readonly faults: string[];
}

export class Client {
  constructor(
    readonly name: string,
    readonly deployment: Deployment,
    readonly notebook: Notebook,
    readonly dice: Dice,
    readonly instances = deployment.instances,
  ) {}

  /** After an unknown outcome, a read or a create with a key is sent again. */
  async run(calls: Iterable<Call>): Promise<void> {
    const { operations, faults } = this.notebook;
    for (const call of calls) {
      const isRead = !["create", "put", "patch", "delete"].includes(call.kind);
      let isUnknown: boolean;
      do {
        const operation = await this.#send(call);
        isUnknown = operation.response === undefined;
        if (!isUnknown || !isRead) operations.push(operation);
      } while (isUnknown && (isRead || "key" in call) && faults.length === 0);
    }
  }

  async #send(call: Call): Promise<Operation> {
    const { tokens, seen, faults } = this.notebook;
    const { user, token } = tokens[this.dice(tokens.length)] as GardenToken;
    const { instance, port, connection } = await waitFor(() => this.#connect());
    const isKilled = () => instance.process?.port !== port;
    const operation = { who: `${this.name} at ${port}`, user, call, calledAtMs: performance.now() };
    try {
      const raw = await connection.ask(writeCall(call, token));
      const endedAtMs = performance.now();
      const entityTag = raw.headers.get("etag");
      const id = raw.headers.get("location")?.split("/").at(-1) ?? ("id" in call && call.id);
      if (entityTag && id) seen.push({ ...JSON.parse(`${raw.body}`), id: BigInt(id), entityTag });
      const response = readResponse(call, raw);
      if (raw.status !== 503) return { ...operation, response, endedAtMs };
    } catch (error) {
      const isExpected = error instanceof Unanswered && isKilled();
      if (!isExpected) faults.push(`${operation.who}, ${call.kind}: ${error}`);
    } finally {
      connection.close();
    }
    let endedAtMs = Number.POSITIVE_INFINITY;
    // On PostgreSQL, a statement that was sent may outlive its client.
    if (isKilled() && this.deployment.engine === "sqlite") {
      await instance.exits.get(port);
      endedAtMs = performance.now();
    }
    return { ...operation, response: undefined, endedAtMs };
  }

  /** To an instance that is up; any of its threads may get the connection. */
  async #connect() {
    const instance = this.instances[this.dice(this.instances.length)] as RestartingService;
    const { port } = instance;
    const connection = await KeptConnection.open({ port }).catch(() => undefined);
    return connection && { instance, port, connection };
  }
}

/** What calls can have. */
interface Fields extends Partial<Plant> {
  readonly kind: Call["kind"];
  readonly key?: string;
  readonly ifMatch?: Tagged | undefined;
  readonly ifNoneMatch?: Tagged | undefined;
  readonly include?: string;
  readonly limit?: number;
  readonly after?: bigint | number;
}

/** A call as HTTP, by docs/interface.md. */
function writeCall(call: Call, token: string): string {
  const { kind, id, name, tag, key, ifMatch, ifNoneMatch, include, limit, after }: Fields = call;
  const headers: Record<string, string> = {};
  if (key !== undefined) headers["Idempotency-Key"] = key;
  if (ifMatch) headers["If-Match"] = toText(ifMatch);
  if (ifNoneMatch) headers["If-None-Match"] = toText(ifNoneMatch);
  const query = Object.entries({ include, limit, after })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`);
  const lines = {
    create: "POST /plants",
    put: `PUT /plants/${id}`,
    patch: `PATCH /plants/${id}`,
    delete: `DELETE /plants/${id}`,
    get: `GET /plants/${id}`,
    count: "GET /me",
    events: `GET /events?limit=1000&after=${after}`,
    list: `GET /plants?${query.join("&")}`,
  };
  const content = JSON.stringify({ name, tag });
  const hasId = kind !== "patch" && id !== undefined;
  const whole = hasId ? `{"id":${id},${content.slice(1)}` : content;
  const body = ["create", "put", "patch"].includes(kind) ? whole : undefined;
  return writeRequest(lines[kind], { token, headers, body });
}

function toText(tagged: Tagged): string {
  return tagged === "*" ? "*" : tagged.entityTag;
}

/** A response as the model has it. */
function readResponse(call: Call, { status, headers, body }: RawResponse): string {
  if (status >= 400) return String(status);
  const text = body.toString();
  if (call.kind === "events") {
    const events = readList<LoggedEvent>(text).map(({ seq, type, user, plant }, index) =>
      seq === call.after + index + 1 ? renderEvent(type, user, plant) : `${seq} after a gap`,
    );
    return `${status} ${events.join("\n")}`;
  }
  const link = headers.get("link");
  const parts = [
    headers.get("location"),
    headers.get("idempotency-replayed") && "replayed",
    link && `next ${/after=(-?\d+).*; rel="next"$/.exec(link)?.[1]}`,
    call.kind === "count" ? JSON.parse(text)[call.of] : text,
  ];
  return [status, ...parts.filter((part) => part !== null && part !== "")].join(" ");
}
