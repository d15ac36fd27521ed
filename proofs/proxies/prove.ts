/**
 * `npm run prove proxies [restarts] [seed]`: two instances behind nginx and HAProxy, with the
 * configurations in deploy/, are stopped or killed, and started again, one after the other, many
 * times, while clients go on.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { makeToken, runProgram, waitFor } from "../../test/end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../test/postgres-server.ts";
import { pickPorts } from "../../test/processes.ts";
import { auditStore } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { type Conclusion, prove } from "../proof.ts";
import { RestartingService } from "../restarting-service.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { findPrograms, makeServerFolder, spawnServer } from "../system-servers.ts";
import { Workload } from "../workload.ts";

interface Proxy {
  readonly name: "nginx" | "haproxy";
  readonly port: number;
  /** What it has logged so far. */
  log(): string;
}

/** HAProxy sends one of two equal Hosts on, instead of refusing them. */
const knownFailures = { nginx: [], haproxy: ["two lengths, two hosts or none are 400"] };
/** Per address, as the configurations set them. */
const addressLimits = { nginx: 256, haproxy: 512 };
/** How long an instance serves before the next one is stopped. */
const apartMs = 2_000;
/** How long it is away. */
const downMs = 500;
const deploy = join(import.meta.dir, "../../deploy");

const programs = findPrograms("nginx", "haproxy");
const server = await startPostgres();
const { url: database } = await makeDatabase(server);
const makeTokenTo = (garden: string) => makeToken({ database }, "gardener", "--garden", garden);
const [one = 0, two = 0, ...proxyPorts] = pickPorts(4);
const instances = [one, two].map((port) => new RestartingService({ database, port }));
await Promise.all(instances.map((instance) => instance.start()));
const proxies = [
  await startProxy("nginx", proxyPorts[0] ?? 0),
  await startProxy("haproxy", proxyPorts[1] ?? 0),
];
for (const proxy of proxies) {
  await checkContract(proxy);
  await checkAddressLimit(proxy);
}

await prove({
  name: "proxies",
  trials: "rolling restarts",
  count: 12,
  async run(seed) {
    const { name, port, log } = proxies[seed % proxies.length] as Proxy;
    const isKilled = seed % 4 >= 2;
    const ledger = new Ledger();
    // Several, because the proxies choose an instance by the token.
    const tokens = await Promise.all(Array.from({ length: 4 }, () => makeTokenTo(`of-${seed}`)));
    const caller = new SteadyCaller({ pickPort: () => port });
    const clients = new Workload(
      tokens.map((token) => ({ token, call: caller.call })),
      ledger,
      { clients: 12, bulkPlantsMax: 10_000, seed, slowReaders: { count: 3, port } },
    );
    for (const instance of instances) {
      await Bun.sleep(apartMs);
      await (isKilled ? instance.kill() : instance.stop());
      await Bun.sleep(downMs);
      await instance.start();
    }
    await Bun.sleep(apartMs);
    await clients.stop();
    const plants = await listPlants(caller, tokens[0] ?? "");
    const faults = [...ledger.audit(plants), ...(await auditStore(database))];
    if (log().includes("temporary file")) faults.push("nginx wrote to a temporary file");
    const { requests } = clients;
    const kind = `${name}, ${isKilled ? "killed" : "stopped"}`;
    // Why requests were repeated.
    const reasons = [...caller.reasons].map(([reason, count]) => [`${kind}, ${reason}`, count]);
    const figures = { requests, "confirmed writes": ledger.promises };
    return { faults, figures: { ...figures, ...Object.fromEntries(reasons) } };
  },
  async conclude() {
    for (const instance of instances) await instance.stop();
    await server.stop();
    return checkOwnRefusal();
  },
});

/** It ends with this process. */
async function startProxy(name: Proxy["name"], port: number): Promise<Proxy> {
  const folder = makeServerFolder();
  const [config, output] = [join(folder, "config"), join(folder, "output")];
  // nginx opens its own, and HAProxy writes to its output.
  const log = name === "nginx" ? join(folder, "log") : output;
  if (name === "nginx") {
    // Included in a block `http`, as a user would.
    const included = substitute("nginx/plantstore.conf", port);
    const logged = included.replace(/access_log \S+/, `access_log ${log}`);
    writeFileSync(join(folder, "plantstore.conf"), logged);
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (kind) => `${kind}_temp_path ${folder}/${kind};`,
    );
    const lines = [
      // One process, which can be killed.
      `daemon off; master_process off; pid ${folder}/pid; error_log ${log} info;`,
      "events { worker_connections 1024; }",
      `http { ${paths.join(" ")} include ${folder}/plantstore.conf; }`,
    ];
    writeFileSync(config, lines.join("\n"));
  } else writeFileSync(config, substitute("haproxy/haproxy.cfg", port));
  const flags = name === "nginx" ? ["-c", config, "-e", log] : ["-f", config];
  const child = spawnServer([programs[name], ...flags], output);
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok || undefined;
  await waitFor(
    () => isReady().catch(() => undefined),
    () => child.exitCode !== null && readFileSync(output, "utf8"),
  );
  return { name, port, log: () => readFileSync(log, "utf8") };
}

/** The configuration with other addresses, and nothing else changed. */
function substitute(path: string, port: number): string {
  return readFileSync(join(deploy, path), "utf8")
    .replace(/^( +)(listen |bind :)80\b/m, (_, indent, word) => {
      return `${indent}${word.replace(":", "")}127.0.0.1:${port}`;
    })
    .replace("127.0.0.1:8081", `127.0.0.1:${one}`)
    .replace("127.0.0.1:8082", `127.0.0.1:${two}`);
}

/** Connections beyond the limit of an address are refused, and there is room again after them. */
async function checkAddressLimit({ name, port }: Proxy): Promise<void> {
  const extra = 50;
  const token = await makeTokenTo("checked");
  // A body that never arrives keeps its request in progress.
  const request =
    "POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
    `Authorization: Bearer ${token}\r\nContent-Length: 9\r\n\r\n{`;
  let refused = 0;
  let text = "";
  const sockets = await Promise.all(
    Array.from({ length: addressLimits[name] + extra }, () => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      const note = (data = "") => {
        refused++;
        text ||= String(data);
      };
      // HAProxy closes the connection without a response.
      if (name === "nginx") socket.once("data", note);
      else socket.once("close", () => note());
      socket.write(request);
      return socket;
    }),
  );
  await waitFor(() => refused >= extra || undefined).catch(() => {});
  const count = refused;
  for (const socket of sockets) socket.removeAllListeners("close").destroy();
  const isOpen = async () => (await fetch(`http://127.0.0.1:${port}/plants`)).status === 401;
  await waitFor(async () => (await isOpen().catch(() => false)) || undefined);
  process.stdout.write(`${name}: refused ${count} of ${sockets.length} connections\n`);
  const isProblem =
    name === "haproxy" || /^HTTP\/1.1 503 .*problem\+json.*Retry-After: 1/s.test(text);
  // A few connections of earlier checks may still be open.
  if (count >= extra && count <= extra + 16 && isProblem) return;
  process.stdout.write(`${text}\n`);
  process.exit(1);
}

/** What HAProxy sends once all instances are down. */
async function checkOwnRefusal(): Promise<Conclusion> {
  const { port } = proxies[1] as Proxy;
  const { status, headers, ...response } = await waitFor(async () => {
    const found = await fetch(`http://127.0.0.1:${port}/plants`);
    return { status: found.status, headers: found.headers, problem: await found.json() };
  });
  const type = headers.get("content-type");
  const text = `haproxy without instances: ${status}, ${type}, Retry-After: ${headers.get("retry-after")}`;
  const isFault =
    text !== "haproxy without instances: 503, application/problem+json, Retry-After: 1" ||
    response.problem.type !== "urn:plantstore:problem:unavailable";
  return { text, isFault };
}

/** The contract holds through the proxy, too, except for what is known. */
async function checkContract({ name, port, log }: Proxy): Promise<void> {
  const variables = { PLANTSTORE_TOKEN: await makeTokenTo("checked") };
  const { out } = await runProgram(["check", `http://127.0.0.1:${port}`], variables);
  process.stdout.write(`${name}: ${/\d+ passed.*/.exec(out)?.[0]}\n`);
  const failed = [...out.matchAll(/✗ (.*)/g)].map(([, rule]) => rule);
  const headers = { "x-request-id": `through-${name}`, "accept-encoding": "gzip" };
  const [direct, proxied] = await Promise.all(
    [one, port].map((each) => fetch(`http://127.0.0.1:${each}/`, { headers })),
  );
  const isSame = ["etag", "content-encoding", "cache-control", "vary", "x-request-id"].every(
    (header) => direct?.headers.get(header) === proxied?.headers.get(header),
  );
  // HAProxy writes its log after the response.
  await waitFor(() => log().includes(`through-${name}`) || undefined);
  if (Bun.deepEquals(failed, knownFailures[name]) && isSame) return;
  process.stdout.write(`${out}\n${isSame ? "" : "The headers differ.\n"}`);
  process.exit(1);
}
