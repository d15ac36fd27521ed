/** The garden that a token opens: which ids are free there, and what this run created. */
import type { Service, ServiceResponse } from "./checked-service.ts";

/** Plants of this run whose id the service assigned are known by this. */
export const nameMark = `plantstore check ${crypto.randomUUID().slice(0, 8)}`;

/** Without lists nobody knows which ids are free. */
export class CannotList extends Error {
  constructor(
    readonly response: ServiceResponse,
    /** The token, in words. */
    readonly label: string,
  ) {
    super(`GET /plants is ${response.status}`);
    this.response = response;
  }
}

interface ListedPlant {
  readonly id: bigint;
  readonly name: string;
}

export class TestGarden {
  readonly #service: Service;
  /** Ids that may hold a plant of this run now, and all that ever did. */
  readonly #held = new Set<bigint>();
  readonly #ever = new Set<bigint>();
  /** All ids from here on were free before the run. */
  #freeFrom = 2n ** 63n;
  /** Whether a plant may be somewhere that no response told. */
  #mayHaveLost = false;

  constructor(
    service: Service,
    readonly token: string,
    /** The token, in words. */
    readonly label: string,
  ) {
    this.#service = service;
  }

  /** Absent if no plant comes after this id. Fails with `CannotList`. */
  async findAfter(id: bigint): Promise<ListedPlant | undefined> {
    return (await this.#listAfter(id, 1))[0];
  }

  async isFree(id: bigint): Promise<boolean> {
    return (await this.findAfter(id - 1n))?.id !== id;
  }

  /** Takes all ids from here on for this run. */
  claimFrom(id: bigint): void {
    this.#freeFrom = id;
  }

  /** Notes what a create has created. No response, or a failure, may have created a plant too. */
  note(body: string, response: ServiceResponse | undefined): void {
    if (response && response.status >= 300 && response.status < 500) return;
    const located = response?.locatedId;
    const ids = located === undefined ? findIds(body + (response?.text ?? "")) : [located];
    for (const id of ids) {
      this.#held.add(id);
      this.#ever.add(id);
    }
    const isReplay = response?.header("Idempotency-Replayed") !== undefined;
    if (ids.length === 0 && !isReplay) this.#mayHaveLost = true;
  }

  /** Deletes what this run created, as far as the service lets it. */
  async cleanUp(): Promise<void> {
    for (const id of this.#held) if (await this.#remove(id)) this.#held.delete(id);
  }

  /** What could not be deleted, in words. The list has the last word: the service may be broken. */
  async finish(): Promise<string[]> {
    for (let round = 0; round < 2; round++) {
      await this.cleanUp().catch(() => {});
      const listed = await this.#listAfter(this.#freeFrom - 1n, 1_000).catch(() => []);
      for (const { id, name } of listed) {
        if (this.#ever.has(id) || name.startsWith(nameMark)) this.#held.add(id);
      }
    }
    const left = [...this.#held].map((id) => `the plant ${id}`);
    if (this.#mayHaveLost) left.push(`plants named "${nameMark} …", if there are any`);
    return left;
  }

  /** Whether it is gone. A plant that may be somebody else's stays. */
  async #remove(id: bigint): Promise<boolean> {
    if (id < this.#freeFrom) {
      const found = await this.findAfter(id - 1n);
      if (found?.id !== id) return true;
      if (!found.name.startsWith(nameMark)) return false;
    }
    const { status } = await this.#send(`DELETE /plants/${id}`);
    return status === 204 || status === 404;
  }

  async #listAfter(id: bigint, limit: number): Promise<readonly ListedPlant[]> {
    const after = id < -(2n ** 63n) ? "" : `&after=${id}`;
    const response = await this.#send(`GET /plants?limit=${limit}&fields=id,name${after}`);
    const { json } = response;
    if (response.status !== 200 || !Array.isArray(json)) throw new CannotList(response, this.label);
    return json.map(({ id, name }) => ({ id: BigInt(JSON.stringify(id)), name: String(name) }));
  }

  #send(request: string): Promise<ServiceResponse> {
    return this.#service.send(request, { headers: { Authorization: `Bearer ${this.token}` } });
  }
}

function findIds(text: string): bigint[] {
  return [...text.matchAll(/"id":\s*(-?\d{1,19})(?![\d.e])/g)].map(([, digits = ""]) =>
    BigInt(digits),
  );
}
