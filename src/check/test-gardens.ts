/** The gardens of the tokens: which ids are free in all of them, and what this run created. */
import { CannotCheck, type Service, type ServiceResponse } from "./service.ts";

export interface Tokens {
  /** May write. */
  readonly write: string;
  /** Opens another garden. */
  readonly second?: string | undefined;
  /** May only read. */
  readonly read?: string | undefined;
}

/** Where each token comes from, for messages. */
export const tokenVariables: Readonly<Record<keyof Tokens, string>> = {
  write: "PLANTSTORE_TOKEN",
  second: "PLANTSTORE_TOKEN_2",
  read: "PLANTSTORE_TOKEN_READ",
};

/** The names of this run's plants start with it. */
export const nameMark = `plantstore check ${crypto.randomUUID().slice(0, 8)}`;

/** Far above the ids that the service assigns. */
const preferredIds = [5n * 10n ** 15n, 10n ** 17n, 5n * 10n ** 18n, 92n * 10n ** 17n];

/** How many free ids a row gets. */
export const idsOfRow = 100n;

export class TestGardens {
  readonly #service: Service;
  readonly tokens: Tokens;
  /** All plants that this run may have created. */
  readonly #created: { id: bigint; token: string; isDeleted: boolean }[] = [];
  #mayHaveLost = false;
  /** All ids from here on were free before the run, so that lists have an end. */
  #freeFrom = 0n;
  #nextId = 0n;

  constructor(service: Service, tokens: Tokens) {
    this.#service = service;
    this.tokens = tokens;
  }

  /** Looks for free ids, and whether the tokens are good. Fails with `CannotCheck`. */
  async open(): Promise<void> {
    // Two checks at the same time must not delete each other's plants.
    const offset = BigInt(Math.floor(Math.random() * 1e9)) * idsOfRow;
    let obstacle: string | undefined;
    for (const id of preferredIds) {
      this.#freeFrom = this.#nextId = id + offset;
      obstacle = await this.#findObstacle(this.#freeFrom);
      if (obstacle === undefined) break;
    }
    if (obstacle !== undefined) {
      const must = "The check needs the highest ids of a garden, so that its lists have an end";
      const advice = "Use a token to another garden, such as from plantstore token create check.";
      throw new CannotCheck("no-room", `${must}, but ${obstacle}. ${advice}`);
    }
    // There is no such plant, so nothing changes.
    const { status } = await this.#send(`DELETE /plants/${this.#freeFrom}`, this.tokens.write);
    if (status === 403)
      throw new CannotCheck("token-refused", `${tokenVariables.write} may only read.`);
    const { write, second } = this.tokens;
    if (second !== undefined && (await this.#openSameGarden(write, second))) {
      const message = `${tokenVariables.second} must open another garden than ${tokenVariables.write}.`;
      throw new CannotCheck("token-refused", message);
    }
  }

  /** False where the service doesn't say. */
  async #openSameGarden(...tokens: string[]): Promise<boolean> {
    const [first, second] = await Promise.all(tokens.map((token) => this.#send("GET /me", token)));
    const garden: unknown = first?.json?.garden;
    return typeof garden === "string" && garden === second?.json?.garden;
  }

  /** The first of `idsOfRow` free ids. */
  takeIds(): bigint {
    this.#nextId += idsOfRow;
    return this.#nextId;
  }

  /** Remembers what a create may have created, even if it failed or got no response. */
  note(token: string, body: string, response: ServiceResponse | undefined): void {
    const { status = 500, locatedId } = response ?? {};
    if ((status >= 300 && status < 500) || status === 507) return;
    const sent = [...body.matchAll(/"id":\s*(-?\d{1,19})(?![\d.e])/g)];
    const ids = locatedId === undefined ? sent.map(([, id = ""]) => BigInt(id)) : [locatedId];
    const results = response?.results ?? [];
    for (const { id } of results.filter(({ status }) => status === 201)) {
      ids.push(BigInt(JSON.stringify(id)));
    }
    for (const id of new Set(ids)) this.#created.push({ id, token, isDeleted: false });
    const isReplay = response?.header("Idempotency-Replayed") !== undefined;
    if (ids.length === 0 && results.length === 0 && !isReplay) this.#mayHaveLost = true;
  }

  /** Deletes what this run created, as far as the service lets it. */
  async cleanUp(): Promise<void> {
    for (const plant of this.#created) {
      if (plant.isDeleted) continue;
      // An assigned id may belong to somebody else by now, so the name decides.
      if (plant.id < this.#freeFrom) {
        const [found] = await this.#listFrom(plant.id, plant.token);
        plant.isDeleted = found?.id !== plant.id;
        if (plant.isDeleted || !found?.name.startsWith(nameMark)) continue;
      }
      const { status } = await this.#send(`DELETE /plants/${plant.id}`, plant.token);
      plant.isDeleted = status === 204 || status === 404;
    }
  }

  /** What could not be deleted, in words. Lists it: a broken service may say 204 and keep it. */
  async finish(): Promise<string[]> {
    await this.cleanUp().catch(() => {});
    const kept = await this.#listFrom(this.#freeFrom, this.tokens.write, 1_000).catch(() => []);
    const left = this.#created.filter(
      ({ id, isDeleted }) => !isDeleted || kept.some((plant) => plant.id === id),
    );
    const lost = this.#mayHaveLost ? [`plants named "${nameMark} …", if there are any`] : [];
    return [...new Set(left.map(({ id }) => `the plant ${id}`)), ...lost];
  }

  /** The plant that has this id or a higher one, in words. */
  async #findObstacle(id: bigint): Promise<string | undefined> {
    for (const [name, token] of Object.entries(this.tokens)) {
      const variable = tokenVariables[name as keyof Tokens];
      const [plant] = token ? await this.#listFrom(id, token, 1, variable) : [];
      if (plant) return `the garden of ${variable} has ${plant.id} (${plant.name})`;
    }
    return undefined;
  }

  async #listFrom(
    id: bigint,
    token: string,
    limit = 1,
    label = "a token",
  ): Promise<readonly { id: bigint; name: string }[]> {
    const after = id > -(2n ** 63n) ? `&after=${id - 1n}` : "";
    const query = `limit=${limit}&include=id${after}`;
    const { status, json, isFromProxy } = await this.#send(`GET /plants?${query}`, token);
    if (status === 401) throw new CannotCheck("token-refused", `The service refuses ${label}.`);
    if (status !== 200 || !Array.isArray(json)) {
      const must = "GET /plants with limit, after and include=id must be 200 with an array";
      const hint = isFromProxy ? ", perhaps from a proxy" : "";
      throw new CannotCheck("unusable", `${must}, but is ${status}${hint}.`);
    }
    return json.map(({ id, name }) => ({ id: BigInt(JSON.stringify(id)), name: String(name) }));
  }

  #send(request: string, token: string): Promise<ServiceResponse> {
    return this.#service.send(request, { headers: { Authorization: `Bearer ${token}` } });
  }
}
