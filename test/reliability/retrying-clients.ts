/**
 * Clients as users write them: the typed client, with its retries, on kept-alive connections that
 * hide no failure. They create, list and delete without rest, and note what they were promised.
 */
import type { RawResponse } from "../../src/check/wire.ts";
import { PlantStore, type PlantStoreProblem } from "../../src/client/plant-store.ts";
import { makeDice, spread } from "../dice.ts";
import { KeptConnection, writeRequest } from "./kept-connection.ts";
import { type Ledger, tagOf } from "./ledger.ts";

const pauseMs = 10;
/** About 1 MiB of lines. */
const linesMax = 4_000;
const nameCharacters = 150;
const stallMs = 3_000;

export interface ClientsOptions {
  /** Where the next request goes. */
  readonly pickPort: () => number;
  /** Of one garden. The clients share them out. */
  readonly tokens: readonly string[];
  readonly ledger: Ledger;
  /** Why requests were repeated, and how often. */
  readonly reasons: Map<string, number>;
  readonly seed: number;
  /** How many create, list and delete one plant at a time. */
  readonly singles: number;
  /** How many create many plants with one request. */
  readonly bulks: number;
  /** How many list all plants, and stop reading for seconds. */
  readonly slowReaders: number;
}

export class RetryingClients {
  /** Requests that clients made, without their retries. */
  readonly figures = { requests: 0, "with a retry": 0, bulks: 0, "slow reads": 0 };
  readonly #options: ClientsOptions;
  readonly #clients: Promise<void>[];
  #isStopping = false;

  constructor(options: ClientsOptions) {
    this.#options = options;
    const { seed, singles, bulks, slowReaders } = options;
    const runs = [
      ...Array<(number: number) => Promise<void>>(singles).fill((number) =>
        this.#runSingle(number),
      ),
      ...Array(bulks).fill((number: number) => this.#runBulk(number)),
      ...Array(slowReaders).fill((number: number) => this.#runSlow(number)),
    ];
    this.#clients = runs.map((run, index) => run(seed * 1_000 + index));
  }

  /** Resolves when every client has finished what it was doing. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#clients);
  }

  async #runSingle(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const client = new Client(this.#options, number);
    const own: { name: string; id: bigint }[] = [];
    for (let count = 0; !this.#isStopping; count++) {
      const choice = dice(10);
      const doomed = choice < 2 ? own.splice(dice(own.length), 1)[0] : undefined;
      if (doomed) await this.#delete(client, doomed);
      else if (choice < 6) {
        const plant = await this.#create(client, `${number}-${count}`);
        if (plant) own.push(plant);
        if (plant && dice(4) === 0) await this.#find(client, plant);
      } else await this.#call(client, "list", ({ store }) => store.page({ limit: 20 }));
      await Bun.sleep(dice(2 * pauseMs));
    }
    client.close();
  }

  async #runBulk(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const client = new Client(this.#options, number);
    for (let count = 0; !this.#isStopping; count++) {
      await this.#createMany(
        client,
        `${number}-${count}`,
        Math.round(linesMax ** (dice(101) / 100)),
      );
      await Bun.sleep(dice(50 * pauseMs));
    }
    client.close();
  }

  async #runSlow(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const client = new Client(this.#options, number, () => dice(stallMs));
    while (!this.#isStopping) {
      await this.#call(client, "slow list", ({ store }) => store.page({ fields: ["id", "name"] }));
      this.figures["slow reads"]++;
    }
    client.close();
  }

  async #create(client: Client, name: string) {
    const { ledger } = this.#options;
    ledger.note({ name, state: "unknown" });
    const create = ({ store }: Client) => store.create({ name, tag: tagOf(name) });
    const created = await this.#call(client, `create ${name}`, create);
    if (created === undefined) return undefined;
    ledger.note({ name, state: "present", id: String(created.id) });
    return { name, id: created.id };
  }

  async #createMany(client: Client, key: string, lines: number): Promise<void> {
    const { ledger } = this.#options;
    const names = Array.from({ length: lines }, (_, line) =>
      `${key}/${line} `.padEnd(nameCharacters, "fern "),
    ).map((name) => name.trim());
    ledger.noteAll(names.map((name) => ({ name, state: "unknown" })));
    const plants = names.map((name) => ({ name, tag: tagOf(name) }));
    const create = ({ store }: Client) => store.createMany(plants);
    const results = await this.#call(client, `create ${key}`, create);
    for (const [line, result] of results?.entries() ?? []) {
      const name = names[line] as string;
      if (result.status !== 201) ledger.fault(`create ${name}: ${result.status}`);
      else ledger.note({ name, state: "present", id: String(result.id) });
    }
    this.figures.bulks++;
  }

  async #delete(client: Client, { name, id }: { name: string; id: bigint }): Promise<void> {
    const { ledger } = this.#options;
    ledger.note({ name, state: "unknown" });
    const deleted = await this.#call(client, `delete ${name}`, ({ store }) => store.delete(id));
    if (deleted) ledger.note({ name, state: "absent" });
  }

  /** A plant that was created is found from then on, whichever instance is asked. */
  async #find(client: Client, { name, id }: { name: string; id: bigint }): Promise<void> {
    const find = ({ store }: Client) => store.page({ limit: 1, after: id - 1n });
    const found = await this.#call(client, `find ${name}`, find);
    if (found && found.plants[0]?.name !== name) this.#options.ledger.fault(`not found: ${name}`);
  }

  /** One request, with its retries. Undefined, and a fault, if it fails in the end. */
  async #call<Result>(
    client: Client,
    what: string,
    call: (client: Client) => Promise<Result>,
  ): Promise<Result | undefined> {
    const triesBefore = client.tries;
    try {
      return await call(client);
    } catch (error) {
      const { requestId = "", cause = "" } = error as PlantStoreProblem;
      this.#options.ledger.fault(`${what}: ${error} ${requestId} ${cause}`);
      return undefined;
    } finally {
      this.figures.requests++;
      if (client.tries > triesBefore + 1) this.figures["with a retry"]++;
    }
  }
}

/** One typed client, with a kept-alive connection to each port. */
class Client {
  readonly store: PlantStore;
  tries = 0;
  readonly #options: ClientsOptions;
  readonly #token: string;
  readonly #stallMs: (() => number) | undefined;
  readonly #connections = new Map<number, KeptConnection>();

  constructor(options: ClientsOptions, number: number, stallMs?: () => number) {
    const { tokens } = options;
    this.#token = tokens[number % tokens.length] ?? "";
    this.#options = options;
    this.#stallMs = stallMs;
    this.store = new PlantStore({
      url: "http://plants.test",
      token: this.#token,
      fetch: (url, init) => this.#fetch(new URL(url), init),
    });
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
  }

  async #fetch({ pathname, search }: URL, init: RequestInit): Promise<Response> {
    this.tries++;
    const { method = "GET", body } = init;
    const request = writeRequest(`${method} ${pathname}${search}`, {
      token: this.#token,
      headers: headersOf(init),
      ...(typeof body === "string" && { body }),
    });
    try {
      const response = await this.#ask(request);
      const { status } = response;
      if ([429, 502, 503, 504].includes(status)) this.#note(`${method}: ${status}`);
      const headers = response.headers.map(([name, value]): [string, string] => [name, value]);
      return new Response(status === 204 ? null : response.body.toString(), { status, headers });
    } catch (error) {
      this.#note(`${method}: ${(error as Error).message}`);
      throw error;
    }
  }

  async #ask(request: string): Promise<RawResponse> {
    const connection = await this.#connect();
    const answered = connection.ask(request);
    if (this.#stallMs) {
      answered.catch(() => {});
      const { resume } = await connection.pauseAtFirst();
      await Bun.sleep(this.#stallMs());
      resume();
    }
    return answered;
  }

  async #connect(): Promise<KeptConnection> {
    const port = this.#options.pickPort();
    const kept = this.#connections.get(port);
    if (kept && !kept.isOver) return kept;
    const connection = await KeptConnection.open({ port, isSecure: false });
    this.#connections.set(port, connection);
    return connection;
  }

  #note(reason: string): void {
    const { reasons } = this.#options;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
}

/** Without the token, which `writeRequest` adds, and with the names as it spells them. */
function headersOf({ headers }: RequestInit): Record<string, string> {
  const pairs = [...new Headers(headers)].filter(([name]) => name !== "authorization");
  return Object.fromEntries(
    pairs.map(([name, value]) => [
      name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()),
      value,
    ]),
  );
}

export function listReasons(reasons: ReadonlyMap<string, number> = new Map()): string {
  return [...reasons].map(([reason, count]) => `${count} × ${reason}`).join(", ") || "nothing";
}
