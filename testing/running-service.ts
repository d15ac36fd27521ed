/**
 * Starts the service and talks to it over a socket: the real program in a process of its own, as a
 * user does, or the same service in the test's process, which is faster.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SpawnOptions, Subprocess } from "bun";
import { issueToken, type NewToken } from "../src/auth/opaque-token.ts";
import { serve } from "../src/process/serve.ts";
import { readConfig } from "../src/shared/config.ts";
import { createLog } from "../src/shared/log.ts";
import { memoizeAsync } from "../src/shared/promises.ts";
import { openStorage } from "../src/storage/open.ts";
import { runInProcess } from "./command.ts";
import { Patience } from "./patience.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

export const realProgram = join(import.meta.dir, "../src/main.ts");

/** Whatever this process has started ends with it. */
const started: Subprocess[] = [];
process.on("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** Starts a command, which no setting of the machine reaches, and doesn't wait for it. */
export function spawnProgram(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  program = realProgram,
) {
  const child = Bun.spawn([process.execPath, program, ...args], {
    // Not the working folder: a service may run there, and its data are not the tests'.
    cwd: tmpdir(),
    env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent", ...variables },
    stdout: "pipe",
    stderr: "pipe",
  });
  started.push(child);
  return child;
}

/** Runs a command to its end. */
export function runProgram(...command: Parameters<typeof spawnProgram>) {
  return readOutput(spawnProgram(...command));
}

/** What a command prints, to its end. */
export async function readOutput(child: PipedProcess) {
  const { written, reading } = gather(child);
  await reading;
  return { exitCode: await child.exited, ...written };
}

interface Place {
  readonly database: string;
}

/** Creates a token in a database, as its owner does. */
export async function makeToken(
  { database }: Place,
  user: string,
  ...flags: readonly string[]
): Promise<string> {
  const variables = { PLANTSTORE_DATABASE: database };
  const { out, errors } = await runInProcess(["token", "create", user, ...flags], variables);
  if (out === "") throw new Error(errors);
  return out.trim();
}

/** As many tokens, each to a garden of its own. */
export function makeTokens({ database }: Place, user: string, count: number): Promise<string[]> {
  const users = Array.from({ length: count }, (_, index) => ({ user: `${user}-${index}` }));
  return issueTokens(database, users);
}

async function issueTokens(database: string, grants: readonly NewToken[]): Promise<string[]> {
  const storage = await openStorage(database, { isServing: false });
  const issued = grants.map((grant) => issueToken(storage, grant, Date.now()));
  const tokens = (await Promise.all(issued)).map(({ token }) => token);
  await storage.close();
  return tokens;
}

/** Revokes the tokens of a user, as another process does. */
export async function revokeTokens({ database }: Place, user: string): Promise<void> {
  const storage = await openStorage(database, { isServing: false });
  const tokens = (await storage.listTokens()).filter((token) => token.user === user);
  for (const { id } of tokens) await storage.revokeToken(id, Date.now());
  await storage.close();
}

/** A garden that no other test uses, and what calls it. Commands run in this process. */
export async function openGarden(service: Place & { readonly url: string }, grant: NewToken) {
  const [token = ""] = await issueTokens(service.database, [grant]);
  const env = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
  return {
    env,
    token,
    call: makeCaller(service.url, token),
    run: (args: string | readonly string[], url = service.url, stdin?: string) =>
      runInProcess(args, { ...env, PLANTSTORE_URL: url }, stdin),
  };
}

/** The service in this process, on one thread unless told otherwise, with a first token. */
export async function serveHere(
  settings: Readonly<Record<string, string>> = {},
  { mayRefuse = false, ...intervals }: ServeOptions = {},
) {
  const folder = makeTemporaryFolder();
  const defaults = { port: "0", threads: "1", database: join(folder.path, "plants.db") };
  const config = readConfig({ ...defaults, ...settings }, {});
  let logged = "";
  const write = (lines: string) => {
    logged += lines;
  };
  const log = createLog("json", write, config.logLevel);
  const service = await serve(config, log, intervals);
  const { token } = await issueToken(service.storage, { user: "gardener" }, Date.now());
  const stop = memoizeAsync(() => service.stop());
  return {
    url: service.url,
    port: Number(new URL(service.url).port),
    database: config.database,
    token,
    call: makeCaller(service.url, token),
    /** The lines of its log, or those about one kind of event. */
    // biome-ignore lint/suspicious/noExplicitAny: as the log has them.
    readLog(event?: string): any[] {
      log.flush();
      const lines = Bun.JSONL.parse(logged) as { event: string }[];
      return lines.filter((line) => event === undefined || line.event === event);
    },
    stop,
    /** Ends it. Fails if it refused a request with 503, which clients may have sent again unseen. */
    async [Symbol.asyncDispose]() {
      await stop();
      folder[Symbol.dispose]();
      const refused = this.readLog("request").filter(({ status }) => status === 503);
      if (mayRefuse || refused.length === 0) return;
      throw new Error(`The service refused requests: ${JSON.stringify(refused)}`);
    },
  };
}

interface ServeOptions extends NonNullable<Parameters<typeof serve>[2]> {
  /** The test makes it refuse requests with 503, and looks at each of them. */
  readonly mayRefuse?: boolean;
}

export type RunningService = Awaited<ReturnType<typeof startService>>;

/** The real program. */
export async function startService(
  options: {
    args?: readonly string[];
    database?: string;
    /** Any free one unless given. */
    port?: number;
    variables?: Readonly<Record<string, string>>;
    /** Another program than the real one. */
    program?: string | undefined;
  } = {},
) {
  const folder = makeTemporaryFolder();
  const database = options.database ?? join(folder.path, "plants.db");
  const child = spawnProgram(
    ["serve", "--port", String(options.port ?? 0), "--database", database, ...(options.args ?? [])],
    options.variables,
    options.program,
  );
  const started = await untilItSays(/\burl"?[:=]"([^"]+)"/, child).catch((error) => {
    child.kill("SIGKILL");
    folder[Symbol.dispose]();
    throw error;
  });
  const { found: url, written, reading } = started;
  const token = /plant_\w{49}/.exec(written.errors)?.[0] ?? "";

  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid,
    database,
    /** The first token, if it printed one. */
    token,
    /** What it has written so far. */
    output: () => written,
    call: makeCaller(url, token),
    signal: (name: NodeJS.Signals) => child.kill(name),
    exited: child.exited,
    /** Ends it, if it still runs, and removes its data. */
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      await reading;
      folder[Symbol.dispose]();
    },
  };
}

/** Calls what is at this URL, with this token unless another one is given. */
export function makeCaller(
  url: string,
  token = "",
  send: (url: string, init: RequestInit) => Promise<Response> = fetch,
) {
  return (request: string, init: RequestInit & { token?: string } = {}): Promise<Response> => {
    const [method = "GET", target = "/"] = request.split(" ");
    const headers = new Headers(init.headers);
    const bearer = init.token ?? token;
    if (bearer !== "") headers.set("authorization", `Bearer ${bearer}`);
    if (init.body && !headers.has("content-type")) headers.set("content-type", "application/json");
    return send(url + target, { ...init, method, headers });
  };
}

type Callable = Pick<RunningService, "call">;

/** On a connection of its own, which the kernel gives to one thread or another. */
export function callAnew(
  service: Callable,
  request: string,
  init: { body?: string; token?: string } = {},
): Promise<Response> {
  return service.call(request, { ...init, headers: { connection: "close" } });
}

/** Until each thread has responded: request ids start with their thread's prefix. */
export async function waitForThreads(service: Callable, threads: number): Promise<void> {
  const seen = new Set<string | undefined>();
  await waitFor(async () => {
    const { headers } = await callAnew(service, "GET /healthz");
    seen.add(headers.get("x-request-id")?.split("-")[0]);
    return seen.size === threads || undefined;
  });
}

/** Sends a request again while a service that is away, or a garden that is locked, refuses it. */
export async function insist(
  send: () => Promise<Response>,
  patience = new Patience(),
): Promise<Response> {
  for (;;) {
    const response = await send();
    if (response.status !== 503) return response;
    await patience.wait(await response.text());
  }
}

/** The value of a sample of /metrics; 0 if it isn't there. */
export async function readMetric(service: Callable, sample: string): Promise<number> {
  const text = await (await service.call("GET /metrics")).text();
  const [, value = "0"] = text.split(`\nplantstore_${sample} `);
  return Number.parseFloat(value);
}

/** What a process has written so far, and when all of it is here. */
function gather({ stdout, stderr }: PipedProcess) {
  const written = { out: "", errors: "" };
  const collect = async (stream: ReadableStream<Uint8Array>, name: keyof typeof written) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) written[name] += decoder.decode(chunk, { stream: true });
  };
  const reading = Promise.all([collect(stdout, "out"), collect(stderr, "errors")]);
  return { written, reading };
}

type PipedProcess = Subprocess<SpawnOptions.Writable, "pipe", "pipe">;

/** Until it has written what matches, of which it finds the first group. Fails if it ends. */
export async function untilItSays(sign: RegExp, child: PipedProcess, timeoutMs?: number) {
  const { written, reading } = gather(child);
  const hasEnded = async () => {
    if (child.exitCode === null) return false;
    await reading;
    return `It ended with ${child.exitCode}: ${written.errors}`;
  };
  const found = await waitFor(() => sign.exec(written.out)?.[1], hasEnded, timeoutMs);
  return { found, written, reading };
}

/** Polls until there is a result, less often as time passes; gives up with a reason, or late. */
export async function waitFor<Result>(
  look: () => Result | undefined | Promise<Result | undefined>,
  giveUp: () => string | false | Promise<string | false> = () => false,
  timeoutMs = 60_000,
): Promise<Result> {
  const startedAtMs = performance.now();
  for (let passedMs = 0; passedMs < timeoutMs; passedMs = performance.now() - startedAtMs) {
    const result = await look();
    if (result !== undefined) return result;
    const reason = await giveUp();
    if (reason) throw new Error(reason);
    await Bun.sleep(Math.min(100, 10 + passedMs / 20));
  }
  throw new Error(`It did not happen within ${timeoutMs} ms.`);
}
