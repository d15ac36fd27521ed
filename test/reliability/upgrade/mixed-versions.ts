/** What holds while an older and a newer version serve the same database. */
import { join } from "node:path";
import { type Finished, waitFor } from "../../end-to-end/running-service.ts";
import { makeCaller, ownVersion, RestartedInstance } from "../restarted-instance.ts";

/** A revocation holds everywhere within 5 seconds. */
const revokedWithinMs = 5_000;

export interface Mix {
  /** The checkout of the older version. */
  readonly previous: string;
  readonly database: string;
  /** The port of an instance of the older version, and of one of this version. */
  readonly old: number;
  readonly fresh: number;
}

export interface MixResult {
  /** Every rule that was broken. */
  readonly faults: readonly string[];
  /** Whether the older version repeats a create that the new one confirmed under the same key. */
  readonly isDoubled: boolean;
}

export async function checkMix(mix: Mix): Promise<MixResult> {
  const { database } = mix;
  const faults = await checkRefusals(mix);
  const created = await runCommand(ownVersion, ["token", "create", "mixed"], database);
  const token = created.out.trim();
  const [old, fresh] = [new Side(mix.old, token), new Side(mix.fresh, token)];
  const statuses = [await old.list(), await fresh.list()];
  if (statuses.some((status) => status !== 200)) faults.push(`a new token gets ${statuses}`);
  faults.push(...(await checkPlants(old, fresh)), ...(await checkPlants(fresh, old)));

  const first = await old.create("first at the older one");
  const again = await fresh.create("first at the older one");
  if (again !== first) faults.push(`a key of the older version is unknown: ${first}, ${again}`);
  const location = await fresh.create("first at the new one");
  const isDoubled = (await old.create("first at the new one")) !== location;

  const list = await runCommand(ownVersion, ["token", "list"], database);
  const id = /^(\S+).*\bmixed\b/m.exec(list.out)?.[1] ?? "";
  await runCommand(ownVersion, ["token", "revoke", id], database);
  for (const side of [old, fresh]) {
    const isRefused = async () => (await side.list()) === 401 || undefined;
    await waitFor(isRefused, undefined, revokedWithinMs).catch(() =>
      faults.push("a revoked token is not refused"),
    );
  }
  return { faults, isDoubled };
}

/** The older version does not touch a schema that it does not know. */
async function checkRefusals({ previous, database }: Mix): Promise<string[]> {
  const faults: string[] = [];
  const { exitCode } = await runCommand(previous, ["token", "list"], database);
  if (exitCode !== 1) faults.push(`a command of the older version ends with ${exitCode}`);
  const instance = new RestartedInstance(database);
  try {
    await instance.start(previous);
    faults.push("an instance of the older version starts again");
  } catch (error) {
    if (!`${error}`.includes("newer version")) faults.push(`no reason is given: ${error}`);
  } finally {
    instance.kill();
  }
  return faults;
}

/** What one of them has done holds at the other at once. */
async function checkPlants(one: Side, other: Side): Promise<string[]> {
  const location = await one.create(`deleted ${one.port}`);
  const deletes = [await other.delete(location), await one.delete(location)];
  const creates = [await one.createChosen(), await other.createChosen()];
  await other.delete(chosenLocation);
  return [
    ...(Bun.deepEquals(deletes, [204, 404]) ? [] : [`a deleted plant: ${deletes}`]),
    ...(Bun.deepEquals(creates, [201, 409]) ? [] : [`an id that is taken: ${creates}`]),
  ];
}

const chosenLocation = "/plants/-7";

/** An instance, as one token sees it. */
class Side {
  readonly port: number;
  readonly #call: (request: string, init?: RequestInit) => Promise<Response>;

  constructor(port: number, token: string) {
    this.port = port;
    const call = makeCaller(port);
    this.#call = (request, init) => call(request, { ...init, token });
  }

  async list(): Promise<number> {
    return (await this.#call("GET /plants?limit=1")).status;
  }

  /** The name is the key, too. Returns where the plant is. */
  async create(name: string): Promise<string> {
    const headers = { "Idempotency-Key": name.replaceAll(" ", "-") };
    const body = JSON.stringify({ name });
    const response = await this.#call("POST /plants", { headers, body });
    return response.headers.get("location") ?? String(response.status);
  }

  async createChosen(): Promise<number> {
    const body = '{"name":"chosen","id":-7}';
    return (await this.#call("POST /plants", { body })).status;
  }

  async delete(location: string): Promise<number> {
    return (await this.#call(`DELETE ${location}`)).status;
  }
}

/** Runs a command of a checkout, as its user does. */
export async function runCommand(
  folder: string,
  args: readonly string[],
  database = "",
): Promise<Finished> {
  const child = Bun.spawn([join(folder, "bin/plantstore"), ...args], {
    env: { PATH: process.env.PATH ?? "", ...(database && { PLANTSTORE_DATABASE: database }) },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, errors, exitCode };
}
