/** The gardens of the tokens: empty when the check begins, and emptied after each row. */
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

/** How many ids a row gets. */
export const idsOfRow = 100n;

export class TestGardens {
  readonly #service: Service;
  readonly tokens: Tokens;
  /** Above 2^52, so that the service assigns none of them. */
  #nextId = 5n * 10n ** 15n;

  constructor(service: Service, tokens: Tokens) {
    this.#service = service;
    this.tokens = tokens;
  }

  /** Fails with `CannotCheck` if a garden has plants in it, or a token isn't what it should be. */
  async open(): Promise<void> {
    for (const [name, token] of Object.entries(this.tokens)) {
      if (token === undefined) continue;
      const variable = tokenVariables[name as keyof Tokens];
      const [plant] = await this.#list(token, "limit=1&", variable);
      if (plant === undefined) continue;
      throw new CannotCheck(
        "not-empty",
        `The garden of ${variable} has plants in it, and the check needs an empty one. Create a ` +
          "token to a new garden: plantstore token create check --garden NAME",
      );
    }
    // There is no such plant, so nothing changes.
    const { status } = await this.#send(`DELETE /plants/${this.#nextId}`, this.tokens.write);
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

  /** The first of `idsOfRow` ids that no other row has used. */
  takeIds(): bigint {
    this.#nextId += idsOfRow;
    return this.#nextId;
  }

  /** Deletes all plants, as far as the service lets it. */
  async empty(): Promise<void> {
    for (const token of [this.tokens.write, this.tokens.second]) {
      if (token === undefined) continue;
      for (const id of await this.#list(token)) await this.#send(`DELETE /plants/${id}`, token);
    }
  }

  /** What could not be deleted, in words: a broken service may say 204 and keep a plant. */
  async finish(): Promise<string[]> {
    try {
      await this.empty();
      const tokens = Object.values(this.tokens).filter((token) => token !== undefined);
      const left = await Promise.all(tokens.map((token) => this.#list(token)));
      return [...new Set(left.flat())].map((id) => `the plant ${id}`);
    } catch {
      return ["what the check created, if the service kept it"];
    }
  }

  /** The ids of a garden's plants. */
  async #list(token: string, query = "", label = "a token"): Promise<readonly bigint[]> {
    const { status, json, isFromProxy } = await this.#send(`GET /plants?${query}include=id`, token);
    if (status === 401) throw new CannotCheck("token-refused", `The service refuses ${label}.`);
    if (status !== 200 || !Array.isArray(json)) {
      const must = "GET /plants with limit and include=id must be 200 with an array";
      const hint = isFromProxy ? ", perhaps from a proxy" : "";
      throw new CannotCheck("unusable", `${must}, but is ${status}${hint}. Is it a Plant Store?`);
    }
    return json.map(({ id }) => BigInt(JSON.stringify(id)));
  }

  #send(request: string, token: string): Promise<ServiceResponse> {
    return this.#service.send(request, { headers: { Authorization: `Bearer ${token}` } });
  }
}
