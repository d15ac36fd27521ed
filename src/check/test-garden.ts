/** The garden of a token: which ids are free there, and what this run created. */
import { type Service, type ServiceResponse, Violation } from "./checked-service.ts";

/** The names of this run's plants start with it. */
export const nameMark = `plantstore check ${crypto.randomUUID().slice(0, 8)}`;

interface ListedPlant {
  readonly id: bigint;
  readonly name: string;
}

export class TestGarden {
  readonly #service: Service;
  /** The ids of all plants that this run may have created, and whether they were deleted. */
  readonly #created = new Map<bigint, boolean>();
  #mayHaveLost = false;
  /** All ids from here on were free before the run. */
  freeFrom = 2n ** 63n;

  constructor(
    service: Service,
    readonly token: string,
  ) {
    this.#service = service;
  }

  /** The first plants after this id. Fails with `Violation` if the service can't list. */
  async listAfter(id: bigint, limit = 1): Promise<readonly ListedPlant[]> {
    const after = id < -(2n ** 63n) ? "" : `&after=${id}`;
    const response = await this.send(`GET /plants?limit=${limit}&fields=id,name${after}`);
    const { status, json } = response;
    if (status !== 200 || !Array.isArray(json)) {
      throw new Violation(`GET /plants is ${status}`, response);
    }
    return json.map(({ id, name }) => ({ id: BigInt(JSON.stringify(id)), name: String(name) }));
  }

  async find(id: bigint): Promise<ListedPlant | undefined> {
    return (await this.listAfter(id - 1n)).find((plant) => plant.id === id);
  }

  send(request: string): Promise<ServiceResponse> {
    return this.#service.send(request, { headers: { Authorization: `Bearer ${this.token}` } });
  }

  /** Notes what a create may have created, also where it failed or got no response. */
  note(body: string, response: ServiceResponse | undefined): void {
    if (response && response.status >= 300 && response.status < 500) return;
    const sent = body.matchAll(/"id":\s*(-?\d{1,19})(?![\d.e])/g);
    const located = response?.locatedId;
    const ids = located === undefined ? [...sent].map(([, id = ""]) => BigInt(id)) : [located];
    for (const id of ids) this.#created.set(id, false);
    const isReplay = response?.header("Idempotency-Replayed") !== undefined;
    if (ids.length === 0 && !isReplay) this.#mayHaveLost = true;
  }

  /** Deletes what this run created, as far as the service lets it. */
  async cleanUp(): Promise<void> {
    for (const [id, isDeleted] of this.#created) {
      if (isDeleted || !(await this.#isOurs(id))) continue;
      const { status } = await this.send(`DELETE /plants/${id}`);
      this.#created.set(id, status === 204 || status === 404);
    }
  }

  /** What could not be deleted, in words. Looks itself: a broken service may say what it likes. */
  async finish(): Promise<string[]> {
    await this.cleanUp().catch(() => {});
    const listed = await this.listAfter(this.freeFrom - 1n, 1_000).catch(() => []);
    const left = [...this.#created].filter(
      ([id, isDeleted]) => !isDeleted || listed.some((plant) => plant.id === id),
    );
    const lost = this.#mayHaveLost ? [`plants named "${nameMark} …", if there are any`] : [];
    return [...left.map(([id]) => `the plant ${id}`), ...lost];
  }

  /** Assigned ids are among those of other plants, so the name decides there. */
  async #isOurs(id: bigint): Promise<boolean> {
    if (id >= this.freeFrom) return true;
    const plant = await this.find(id);
    if (!plant) this.#created.set(id, true);
    return plant?.name.startsWith(nameMark) ?? false;
  }
}
