/** A garden as a token opens it: rules create plants in it, and it becomes what it was before. */
import type { Answer } from "./answer.ts";
import type { Line, RequestHeaders, RequestParts } from "./line.ts";

/** Every plant that gets its id from the service starts with this, so that it is known again. */
export const nameMark = `plantstore check ${crypto.randomUUID().slice(0, 8)}`;

export interface ListedPlant {
  readonly id: bigint;
  readonly name: string;
}

export class Garden {
  readonly line: Line;
  readonly token: string;
  /** Ids that may hold a plant of this run. */
  readonly #touched = new Set<bigint>();
  readonly #removed = new Set<bigint>();
  /** Ids at or above this were free before the run. */
  #freeFrom = 2n ** 63n;
  readonly #reserved = new Set<bigint>();
  /** Whether a plant was created without the service telling where. */
  #hasLost = false;
  /** Whether one may have been: the answer that would tell did not come, or said nothing of it. */
  #mayHaveLost = false;

  constructor(line: Line, token: string) {
    this.line = line;
    this.token = token;
  }

  /** Sends a request with the garden's token, unless the headers say otherwise. */
  async ask(request: string, parts: RequestParts = {}): Promise<Answer> {
    const isCreate = request.startsWith("POST /plants");
    const chosen = isCreate ? findChosenId(parts.body) : undefined;
    const isNew = chosen !== undefined && !this.#touched.has(chosen);
    if (isNew) this.#touched.add(chosen);
    const isAssigned = isCreate && chosen === undefined;
    const answer = await this.line.send(request, { token: this.token, ...parts }).catch((error) => {
      this.#mayHaveLost ||= isAssigned;
      throw error;
    });
    if (isAssigned && answer.status >= 500) this.#mayHaveLost = true;
    if (isCreate && answer.status < 300) {
      const located = findLocatedId(answer);
      if (located !== undefined) this.#touched.add(located);
      const isReplay = answer.header("Idempotency-Replayed") !== undefined;
      if (located === undefined && chosen === undefined && !isReplay) this.#hasLost = true;
    } else if (isNew && answer.status < 500 && answer.status !== 409) this.#touched.delete(chosen);
    return answer;
  }

  create(draft: object | string | Buffer, headers: RequestHeaders = {}): Promise<Answer> {
    return this.ask("POST /plants", { body: draft, headers });
  }

  /** `query` is what follows `after`, such as `&limit=1`. */
  listBehind(id: bigint, query = ""): Promise<Answer> {
    return this.ask(`GET /plants?after=${id}${query}`);
  }

  delete(id: bigint): Promise<Answer> {
    return this.ask(`DELETE /plants/${id}`);
  }

  /** Absent if there is none. Fails if the service does not list as it must. */
  async findFirst(query: string): Promise<ListedPlant | undefined> {
    const answer = await this.ask(`GET /plants?limit=1&fields=id,name${query}`);
    return readPlants(answer)[0];
  }

  /** Whether there is no plant with this id. */
  async isFree(id: bigint): Promise<boolean> {
    const behind = id === -(2n ** 63n) ? "" : `&after=${id - 1n}`;
    return (await this.findFirst(behind))?.id !== id;
  }

  /** Takes all ids from here on for this run. They must be free. */
  claimFrom(id: bigint): void {
    this.#freeFrom = id;
  }

  /** Takes one more id. It must be free. */
  claim(id: bigint): void {
    this.#reserved.add(id);
  }

  /** Deletes what the run created, as far as the service lets it. */
  async cleanUp(): Promise<void> {
    for (const id of this.#touched) {
      if (!(await this.#remove(id))) continue;
      this.#touched.delete(id);
      this.#removed.add(id);
    }
  }

  /**
   * Looks for plants of this run that no answer told of, or that are there although they were
   * deleted.
   */
  async sweep(): Promise<void> {
    const answer = await this.listBehind(this.#freeFrom - 1n, "&limit=1000&fields=id,name");
    for (const { id, name } of readPlants(answer)) {
      if (this.#removed.has(id) || name.startsWith(nameMark)) this.#touched.add(id);
    }
    if (this.#hasLost || this.#mayHaveLost) await this.#findLost();
  }

  /** Ids that the service assigned last are the highest below those of this run. */
  async #findLost(): Promise<void> {
    let [highest, bound] = [0n, this.#freeFrom];
    while (bound - highest > 1n) {
      const middle = (highest + bound - 1n) / 2n;
      const found = await this.findFirst(`&after=${middle}`);
      if (found !== undefined && found.id < bound) highest = found.id;
      else bound = middle + 1n;
    }
    const recent = highest > 1_000n ? highest - 1_000n : 0n;
    const listed = readPlants(await this.listBehind(recent, "&limit=1000&fields=id,name"));
    for (const { id } of listed.filter(({ name }) => name.startsWith(nameMark))) {
      this.#touched.add(id);
      this.#hasLost = false;
    }
    this.#mayHaveLost = false;
  }

  /** What could not be deleted, in words. */
  get leftBehind(): string[] {
    const plants = [...this.#touched].map((id) => `the plant ${id}`);
    if (this.#hasLost) plants.push(`plants named "${nameMark} …"`);
    else if (this.#mayHaveLost) plants.push(`plants named "${nameMark} …", if there are any`);
    return plants;
  }

  /** Whether it is gone. A plant that may be another's is left alone. */
  async #remove(id: bigint): Promise<boolean> {
    if (id < this.#freeFrom && !this.#reserved.has(id)) {
      const found = await this.findFirst(`&after=${id - 1n}`);
      if (found?.id !== id) return true;
      if (!found.name.startsWith(nameMark)) return false;
    }
    const { status } = await this.delete(id);
    return status === 204 || status === 404 || this.isFree(id);
  }
}

function readPlants(answer: Answer): readonly ListedPlant[] {
  const { json } = answer;
  if (answer.status === 200 && Array.isArray(json)) return json;
  throw new CannotList(answer);
}

/** Without lists nothing can be checked, because nobody knows which ids are free. */
export class CannotList extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(`GET /plants answers ${answer.status}`);
    this.answer = answer;
  }
}

function findChosenId(body: RequestParts["body"]): bigint | undefined {
  if (body === undefined) return undefined;
  if (typeof body !== "string" && !(body instanceof Buffer)) {
    const { id } = body as { id?: unknown };
    return typeof id === "bigint" ? id : undefined;
  }
  const digits = /"id":(-?\d+)/.exec(body.toString())?.[1];
  return digits === undefined || digits.length > 19 ? undefined : BigInt(digits);
}

function findLocatedId(answer: Answer): bigint | undefined {
  const digits = /\/(-?\d{1,19})$/.exec(answer.header("location") ?? "")?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}
