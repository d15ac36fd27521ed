/**
 * Sends tokens of every kind to the program, in the right places and in odd ones, and searches
 * everything that it writes for them: output, log, responses, metrics, files, process list.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../src/storage/open.ts";
import {
  type RunningService,
  runProgram,
  startService,
} from "../../test/end-to-end/running-service.ts";
import { audience, startIssuer } from "../../test/openid-issuer.ts";
import { listProcesses } from "../../test/processes.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { KeptConnection } from "../kept-connection.ts";
import { type Credential, makeCredentials } from "./credentials.ts";

/** Long enough to be found nowhere but in the token. */
const searchedCharacters = 32;
/** A request may contain it several times, with room for other headers. */
const headerCharactersMax = 4_000;
const pollMs = 5;

/** What was written, by place. */
type Traces = Map<string, string>;

/** Where tokens were found, and all places that were searched. */
export async function gatherTraces(log: "json" | "text", program?: string) {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const issuer = startIssuer();
  const storage = await openStorage(database, { isServing: false });
  const all = await makeCredentials(storage, issuer, "north");
  await storage.close();
  const credentials = all.filter(({ name, token, authorization }) => {
    const isPlain = authorization === `Bearer ${token}` && token.length > searchedCharacters;
    // Only a token's hash is stored, and that gives no access.
    return isPlain && name !== "token's hash";
  });
  const traces: Traces = new Map();
  await using service = await startService({
    database,
    program,
    args: ["--threads", "2", "--log", log, "--jwt-issuer", issuer.url, "--jwt-audience", audience],
  });
  await sendAll(service, credentials, traces);
  await runCommands(service, credentials, folder.path, traces, program);
  readFolder(folder.path, "while it runs", traces);
  service.signal("SIGTERM");
  await service.exited;
  traces.set("standard output", service.output().out);
  traces.set("standard error", service.output().errors);
  readFolder(folder.path, "after it stopped", traces);
  await issuer.stop();
  const found = credentials.flatMap(({ name, token }) =>
    Array.from(traces)
      .filter(([, text]) => text.includes(token.slice(-searchedCharacters)))
      .map(([place]) => `${name} in ${place}`),
  );
  return { found, places: [...traces.keys()] };
}

/** Requests that put a token where it belongs, and where it does not. */
function requestsWith(token: string, authorization: string): readonly string[] {
  const request = (line: string, headers: readonly string[], body = "") => {
    const length = body === "" ? [] : [`Content-Length: ${body.length}`];
    return [`${line} HTTP/1.1`, ...headers, ...length, "", body].join("\r\n");
  };
  const host = "Host: plants.test";
  const bearer = `Authorization: Bearer ${token}`;
  const allowed = `Authorization: ${authorization}`;
  const json = "Content-Type: application/json";
  return [
    request("GET /plants", [host, bearer]),
    request("POST /plants", [host, bearer, json], '{"name":"Fern"}'),
    request("GET /plants", [host, `Authorization: Token ${token}`]),
    request("GET /plants", [host, `Authorization: ${token}`]),
    request("GET /plants", [host, `${bearer},${token}`]),
    request(`GET /plants?access_token=${token}`, [host, allowed]),
    request(`GET /plants?limit=${token}`, [host, allowed]),
    request(`DELETE /plants/${token}`, [host, allowed]),
    request(`GET /${token}`, [host]),
    request("GET /plants", [`Host: ${token}`, allowed]),
    request("GET /plants", [host, allowed, `X-Request-Id: ${token}`]),
    request("POST /plants", [host, allowed, json, `Idempotency-Key: ${token}`], "{}"),
    request("POST /plants", [host, allowed, json], `{"token":"${token}"}`),
    request("POST /plants", [host, allowed, json], `{"name":${token}}`),
    request("POST /plants", [host, allowed, `Content-Type: ${token}`], "{}"),
    request("OPTIONS /plants", [host, `Origin: https://${token}.test`]),
    request("GET /healthz", [host, `Cookie: token=${token}`]),
    request(`${token} /plants`, [host, allowed]),
  ];
}

async function sendAll(
  { port, call }: RunningService,
  credentials: readonly Credential[],
  traces: Traces,
): Promise<void> {
  const writer = credentials.find(({ standing }) => standing === "write")?.authorization ?? "";
  for (const { name, token } of credentials) {
    if (token.length > headerCharactersMax) continue;
    await Promise.all(
      requestsWith(token, writer).map(async (text) => {
        const connection = await KeptConnection.open({ port, isSecure: false });
        // The runtime sends no response to some malformed requests.
        const response = await connection.ask(text).catch(() => undefined);
        connection.close();
        const shown = `${response?.headers.join("\n")}\n${response?.body.toString("latin1")}`;
        traces.set(`the response with ${name} to ${text.slice(0, 100)}`, shown);
      }),
    );
  }
  traces.set("/metrics", await (await call("GET /metrics")).text());
}

/** Commands with good and bad tokens, as docs/command-line.md says. */
async function runCommands(
  { url, database }: RunningService,
  credentials: readonly Credential[],
  folder: string,
  traces: Traces,
  program?: string,
): Promise<void> {
  const commands: readonly (readonly [kind: string, command: string])[] = [
    ["write token", `plants list --url ${url}`],
    ["write token", `plants add Fern --url ${url}`],
    ["write token", `export --url ${url} ${join(folder, "plants.csv")}`],
    ["write token", `token list --json --database ${database}`],
    ["revoked token", `plants list --url ${url}`],
    ["token with a wrong checksum", `plants list --url ${url}`],
    ["expired JWT", `plants list --url ${url}`],
  ];
  const runs = commands.map(async ([kind, line]) => {
    const { token = "" } = credentials.find(({ name }) => name === kind) ?? {};
    const words = line.split(" ");
    const { out, errors } = await runProgram(words, { PLANTSTORE_TOKEN: token }, program);
    const what = `${words.slice(0, 2).join(" ")} with ${kind}`;
    traces.set(what, out + errors);
    return what;
  });
  const processes = await watchProcesses(Promise.all(runs));
  for (const run of runs) traces.set(`the processes during ${await run}`, processes);
}

/** All processes until the end of these commands: they may start others, or rename themselves. */
async function watchProcesses(running: Promise<unknown>): Promise<string> {
  const seen = new Set<string>();
  let isOver = false;
  running.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    for (const { command } of listProcesses()) seen.add(command);
    await Bun.sleep(pollMs);
  }
  return [...seen].join("\n");
}

function readFolder(folder: string, when: string, traces: Traces): void {
  for (const name of readdirSync(folder)) {
    traces.set(`${name} ${when}`, readFileSync(join(folder, name), "latin1"));
  }
}
