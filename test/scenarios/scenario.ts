/** Runs a table of scenarios through the whole service but its socket, on a real storage. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import type { Storage } from "../../src/domain/storage.ts";
import { problems } from "../../src/http/problem.ts";
import { type Assembly, assemble } from "../../src/listening/assembly.ts";
import { createLog } from "../../src/log.ts";
import { openStorage } from "../../src/storage/open.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

export interface Scenario {
  readonly name: string;
  /** Plants that the garden holds before: id and, if it matters, name and tag. */
  readonly given?: readonly { id: bigint; name?: string; tag?: string }[];
  /** Method and target, as in a request line. */
  readonly request: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text is sent as it is; anything else as JSON, with its content type. */
  readonly body?: string | Uint8Array | object;
  /** `write` unless given. */
  readonly token?: "write" | "read" | "none";
  readonly status: number;
  /** The body, as parsed JSON or, for text, as it is; `""` for none. */
  readonly answer?: unknown;
  /** Headers that must be there; `null`: must not be there. */
  readonly answerHeaders?: Readonly<Record<string, string | RegExp | null>>;
  readonly problem?: ErrorCode;
  /** Where the faults are, in the order in which they are reported. */
  readonly faults?: readonly string[];
  /** The ids in the garden afterwards. Those of `given`, unless said otherwise. */
  readonly left?: readonly bigint[];
}

export interface World {
  readonly storage: Storage;
  readonly assembly: Assembly;
  fetch(request: string, init?: RequestInit): Promise<Response>;
  /** The same data as another process sees it; whoever opens it closes it. */
  openAgain(): Promise<Storage>;
  makeToken(wish: NewToken): Promise<string>;
}

export const engines = ["SQLite", "PostgreSQL"] as const;
export type Engine = (typeof engines)[number];

/** One storage and one app for a test file; the hooks open and close them. */
export function openWorld(
  engine: Engine,
  config: Partial<Parameters<typeof assemble>[0]> = {},
  log = createLog("off", () => {}),
): World {
  let place: Place | undefined;
  let storage: Storage | undefined;
  let assembly: Assembly | undefined;
  beforeAll(async () => {
    place = await makePlace(engine);
    const plantsMax = config.usage?.plantsMax;
    storage = await openStorage(place.address, { isServing: true, plantsMax });
    assembly = assemble({ basePath: "", corsOrigins: "*", ...config }, storage, log);
    await assembly.authenticator.refresh();
  });
  afterAll(async () => {
    await storage?.close();
    await place?.remove();
  });
  const opened = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error("The world is not open yet.");
    return part;
  };
  return {
    get storage() {
      return opened(storage);
    },
    get assembly() {
      return opened(assembly);
    },
    async fetch(request, init = {}) {
      const [method = "GET", target = "/"] = request.split(" ");
      const headers = new Headers(init.headers);
      if (!headers.has("host")) headers.set("host", "plants.test");
      if (typeof init.body === "string" && !headers.has("content-length")) {
        headers.set("content-length", String(Buffer.byteLength(init.body)));
      }
      const url = `http://plants.test${target}`;
      return opened(assembly).app.fetch(new Request(url, { ...init, method, headers }));
    },
    openAgain: () => openStorage(opened(place).address, { isServing: false }),
    async makeToken(wish) {
      const { token } = await issueToken(opened(storage), wish, Date.now());
      return token;
    },
  };
}

/** Where a storage can be opened. */
interface Place {
  readonly address: string;
  remove(): Promise<void>;
}

async function makePlace(engine: Engine): Promise<Place> {
  if (engine === "PostgreSQL") {
    const database = await makeDatabase();
    return { address: database.url, remove: database.drop };
  }
  const folder = makeTemporaryFolder();
  return {
    address: join(folder.path, "plants.db"),
    remove: async () => folder[Symbol.dispose](),
  };
}

let gardens = 0;

export function runScenarios(world: World, scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios) {
    test(scenario.name, () => runScenario(world, scenario));
  }
}

async function runScenario(world: World, scenario: Scenario): Promise<void> {
  const garden = `garden-${++gardens}`;
  const given = scenario.given ?? [];
  await plant(world.storage, garden, given);
  const response = await world.fetch(scenario.request, await buildRequest(world, scenario, garden));

  expect(response.status).toBe(scenario.status);
  expect(response.headers.get("x-request-id")).toMatch(/^[\w.-]{1,128}$/);
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json");
  const body = isJson && text !== "" ? JSON.parse(text) : text;
  if (scenario.answer !== undefined) expect(body).toEqual(scenario.answer);
  checkHeaders(response.headers, scenario.answerHeaders ?? {});
  if (scenario.problem) checkProblem(response, body, scenario);

  const left = await world.storage.list(garden, undefined, 1_000);
  const expected = scenario.left ?? given.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1));
  expect(left.map(({ id }) => id)).toEqual([...expected]);
}

async function plant(
  storage: Storage,
  garden: string,
  given: NonNullable<Scenario["given"]>,
): Promise<void> {
  if (given.length === 0) return;
  await storage.apply(
    given.map(({ id, name = `Plant ${id}`, tag = "" }) => ({
      kind: "create",
      garden,
      id,
      name,
      tag,
      idempotency: undefined,
    })),
  );
}

async function buildRequest(
  world: World,
  scenario: Scenario,
  garden: string,
): Promise<RequestInit> {
  const { body, token = "write" } = scenario;
  const headers = new Headers();
  if (token !== "none") {
    const text = await world.makeToken({ user: "tester", garden, scope: token });
    headers.set("authorization", `Bearer ${text}`);
  }
  if (body !== undefined) headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(scenario.headers ?? {})) {
    if (value === "") headers.delete(name);
    else headers.set(name, value);
  }
  if (body === undefined) return { headers };
  if (typeof body === "string") return { headers, body };
  return { headers, body: body instanceof Uint8Array ? Buffer.from(body) : JSON.stringify(body) };
}

export function checkHeaders(
  headers: Headers,
  expected: Readonly<Record<string, string | RegExp | null>>,
): void {
  for (const [name, value] of Object.entries(expected)) {
    if (value instanceof RegExp) expect(headers.get(name)).toMatch(value);
    else expect([name, headers.get(name)]).toEqual([name, value]);
  }
}

function checkProblem(response: Response, body: unknown, scenario: Scenario): void {
  const { status, title } = problems[scenario.problem as ErrorCode];
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  expect(body).toMatchObject({
    type: `urn:plantstore:problem:${scenario.problem}`,
    title,
    status,
    requestId: response.headers.get("x-request-id") ?? "none",
  });
  const { errors } = body as { errors?: Record<string, string>[] };
  if (scenario.faults) {
    const places = errors?.map((each) => each.pointer ?? each.parameter ?? each.header);
    expect(places).toEqual([...scenario.faults]);
  }
  if (status !== 400) expect(errors).toBeUndefined();
}
