/**
 * Sends tokens of every kind to the program, in the right places and in odd ones, and searches
 * everything that it writes for them: output, log, responses, metrics, spans, files, process list.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../../src/storage/open.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { startIssuer } from "../../openid-issuer.ts";
import { listProcesses } from "../../processes.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { KeptConnection } from "../kept-connection.ts";
import { type Credential, makeCredentials } from "./credentials.ts";

/** Long enough to be found nowhere but in the token. */
const searchedCharacters = 32;
/** A request may contain it several times, with room for other headers. */
const headerCharactersMax = 4_000;
const pollMs = 5;

export interface Traces {
  /** Where a token was found: its kind and the place. */
  readonly found: readonly string[];
  readonly places: readonly string[];
  readonly tokens: number;
}

export async function gatherTraces(log: "json" | "text", program?: string): Promise<Traces> {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const issuer = startIssuer();
  const storage = await openStorage(database, { isServing: false });
  const credentials = await makeCredentials(storage, issuer, "north");
  await storage.close();
  const traces = new Map<string, string>();
  await using collector = startCollector(traces);
  await using service = await startService({
    database,
    program,
    args: [
      ...["--threads", "2", "--log", log, "--jwt-issuer", issuer.url],
      ...["--jwt-audience", "https://plants.test"],
      ...["--trace-endpoint", `http://127.0.0.1:${collector.port}`],
    ],
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
  return search(credentials, traces);
}

/** Takes the spans of requests, as an OpenTelemetry collector does. */
function startCollector(traces: Map<string, string>) {
  return Bun.serve({
    port: 0,
    async fetch(request) {
      traces.set("spans", (traces.get("spans") ?? "") + (await request.text()));
      return Response.json({});
    },
  });
}

function search(credentials: readonly Credential[], traces: ReadonlyMap<string, string>): Traces {
  const tokens = credentials.filter(({ name, token = "" }) => {
    // The hash of a token is what is stored of it, and opens nothing.
    return token.length > searchedCharacters && name !== "token's hash";
  });
  const found = tokens.flatMap(({ name, token = "" }) => {
    const searched = token.slice(-searchedCharacters);
    return Array.from(traces)
      .filter(([, text]) => text.includes(searched))
      .map(([place]) => `${name} in ${place}`);
  });
  return { found, places: [...traces.keys()], tokens: tokens.length };
}

/** Requests that put a token where it belongs, and where it does not. */
function requestsWith(token: string, authorization: string): Record<string, string> {
  const request = (line: string, headers: readonly string[] = [], body = "") => {
    const length = body === "" ? [] : [`Content-Length: ${body.length}`];
    return [`${line} HTTP/1.1`, ...headers, ...length, "", body].join("\r\n");
  };
  const host = "Host: plants.test";
  const allowed = `Authorization: ${authorization}`;
  const json = "Content-Type: application/json";
  return {
    "its place": request("GET /plants", [host, `Authorization: Bearer ${token}`]),
    "a write": request(
      "POST /plants",
      [host, json, `Authorization: Bearer ${token}`],
      '{"name":"Fern"}',
    ),
    "another scheme": request("GET /plants", [host, `Authorization: Token ${token}`]),
    "no scheme": request("GET /plants", [host, `Authorization: ${token}`]),
    "a list of two": request("GET /plants", [host, `Authorization: Bearer ${token},${token}`]),
    "the query": request(`GET /plants?access_token=${token}`, [host, allowed]),
    "a parameter": request(`GET /plants?limit=${token}`, [host, allowed]),
    "the path": request(`DELETE /plants/${token}`, [host, allowed]),
    "an unknown path": request(`GET /${token}`, [host]),
    "the host": request("GET /plants", [`Host: ${token}`, allowed]),
    "the request's id": request("GET /plants", [host, allowed, `X-Request-Id: ${token}`]),
    "the key of a refused create": request(
      "POST /plants",
      [host, allowed, json, `Idempotency-Key: ${token}`],
      "{}",
    ),
    "a field of the body": request("POST /plants", [host, allowed, json], `{"token":"${token}"}`),
    "a body that is no JSON": request("POST /plants", [host, allowed, json], `{"name":${token}}`),
    "the content type": request("POST /plants", [host, allowed, `Content-Type: ${token}`], "{}"),
    "the origin": request("OPTIONS /plants", [host, `Origin: https://${token}.test`]),
    "a cookie": request("GET /healthz", [host, `Cookie: token=${token}`]),
    "the method": request(`${token} /plants`, [host, allowed]),
  };
}

async function sendAll(
  { port }: RunningService,
  credentials: readonly Credential[],
  traces: Map<string, string>,
): Promise<void> {
  const writer = credentials.find(({ standing }) => standing === "write")?.authorization ?? "";
  for (const { name, token } of credentials) {
    if (token === undefined || token.length > headerCharactersMax) continue;
    const sent = Object.entries(requestsWith(token, writer));
    await Promise.all(
      sent.map(async ([place, text]) => {
        traces.set(`the response to ${name} in ${place}`, await exchange(port, text));
      }),
    );
  }
  for (const path of ["/metrics", "/openapi.json"]) {
    const text = `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${writer}\r\n\r\n`;
    traces.set(path, await exchange(port, text));
  }
}

/** The whole response as text. The runtime sends none to some malformed requests. */
async function exchange(port: number, text: string): Promise<string> {
  const connection = await KeptConnection.open({ port, isSecure: false });
  const response = await connection.ask(text).catch(() => undefined);
  connection.close();
  return `${response?.headers.join("\n")}\n${response?.body.toString("latin1")}`;
}

/** Commands with good and bad tokens, as docs/command-line.md says. */
async function runCommands(
  { url, database }: RunningService,
  credentials: readonly Credential[],
  folder: string,
  traces: Map<string, string>,
  program?: string,
): Promise<void> {
  const list = ["plants", "list", "--url", url];
  const commands: readonly (readonly [kind: string, command: readonly string[]])[] = [
    ["write token", list],
    ["write token", ["plants", "add", "Fern", "--url", url]],
    ["write token", ["export", "--url", url, join(folder, "plants.csv")]],
    ["write token", ["token", "list", "--json", "--database", database]],
    ["write token", ["completion", "bash"]],
    ["revoked token", list],
    ["token with a wrong checksum", list],
    ["expired JWT", list],
  ];
  await Promise.all(
    commands.map(async ([kind, command]) => {
      const { token = "" } = credentials.find(({ name }) => name === kind) ?? {};
      const running = runProgram(command, { PLANTSTORE_TOKEN: token }, program);
      const what = `${command.slice(0, 2).join(" ")} with ${kind}`;
      traces.set(`the processes during ${what}`, await watchProcesses(running));
      const { out, errors } = await running;
      traces.set(what, out + errors);
    }),
  );
}

/** All processes from its start to its end: it may start others, or rename itself. */
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

function readFolder(folder: string, when: string, traces: Map<string, string>): void {
  for (const name of readdirSync(folder)) {
    traces.set(`${name} ${when}`, readFileSync(join(folder, name), "latin1"));
  }
}
