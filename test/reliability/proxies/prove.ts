/**
 * `npm run prove proxies [restarts] [seed]`: two instances behind nginx and HAProxy are stopped or
 * killed, and started again, one after the other, many times, while clients go on.
 */
import { makeToken, runProgram, waitFor } from "../../end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { pickPorts } from "../../processes.ts";
import { auditStore } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { exitOnSignals, prove, skipWithout } from "../proof.ts";
import { RestartingService } from "../restarting-service.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";
import { type BalancerName, LoadBalancer } from "./load-balancer.ts";

const names: readonly BalancerName[] = ["nginx", "haproxy"];
/** HAProxy sends one of two equal Hosts on, instead of refusing them. */
const knownFailures: Record<BalancerName, readonly string[]> = {
  nginx: [],
  haproxy: ["two lengths, two hosts or none are 400"],
};
/** How long an instance serves before the next one is stopped. */
const apartMs = 2_000;
/** How long it is away. */
const downMs = 500;

const missing = names.filter((name) => !LoadBalancer.find(name)).join(" and ");
skipWithout(missing === "" ? undefined : `${missing} of Debian are needed`);
process.stdout.write(`${names.map((name) => LoadBalancer.version(name)).join("; ")}\n`);

const server = await startPostgres();
const database = await makeDatabase(server);
const makeTokenTo = (garden: string) =>
  makeToken({ database: database.url }, "gardener", "--garden", garden);
const instances = pickPorts(2).map(
  (port) => new RestartingService({ database: database.url, port }),
);
process.on("exit", () => {
  for (const instance of instances) instance.process?.signal("SIGKILL");
});
exitOnSignals();
await Promise.all(instances.map((instance) => instance.start()));
const ports = instances.map(({ port }) => port);
const proxies = await Promise.all(names.map((name) => LoadBalancer.start(name, ports)));
let promises = 0;
/** Why requests were repeated, by the proxy and how the instances ended. */
const reasons: string[] = [];

for (const proxy of proxies) await checkContract(proxy);

await prove({
  name: "proxies",
  trials: "rolling restarts",
  count: 12,
  async run(seed) {
    const proxy = proxies[seed % proxies.length] as LoadBalancer;
    const isKilled = seed % 4 >= 2;
    const kind = `${proxy.name}, ${isKilled ? "killed" : "stopped"}`;
    const ledger = new Ledger();
    // Several, because the proxies choose an instance by the token.
    const tokens = await Promise.all(Array.from({ length: 4 }, () => makeTokenTo(`of-${seed}`)));
    const caller = new SteadyCaller({ pickPort: () => proxy.port });
    const { call } = caller;
    const clients = new Workload(
      tokens.map((token) => ({ token, call })),
      ledger,
      { clients: 12, linesMax: 10_000, seed, slowReaders: { count: 3, port: proxy.port } },
    );
    for (const instance of instances) {
      await Bun.sleep(apartMs);
      if (isKilled) await instance.kill();
      else await instance.stop();
      await Bun.sleep(downMs);
      await instance.start();
    }
    await Bun.sleep(apartMs);
    await clients.stop();
    const plants = await listPlants(caller, tokens[0] ?? "");
    const faults = [...ledger.audit(plants), ...(await auditStore(database.url))];
    promises += ledger.promises;
    if (proxy.log().includes("temporary file")) faults.push("nginx wrote to a temporary file");
    if (caller.reasons.size > 0) reasons.push(`(${kind}) ${caller.listReasons()}`);
    const { requests, ...others } = clients.figures;
    return { faults, figures: { ...others, [`requests (${kind})`]: requests } };
  },
  async conclude() {
    for (const instance of instances) await instance.stop();
    await server.stop();
    return {
      text: `${promises} confirmed writes; retried after: ${reasons.join("; ")}`,
    };
  },
});

/** The contract holds through the proxy, too, except for what is known. */
async function checkContract(proxy: LoadBalancer): Promise<void> {
  const { name, url, port } = proxy;
  const token = await makeTokenTo("checked");
  const { out } = await runProgram(["check", url], { PLANTSTORE_TOKEN: token });
  process.stdout.write(`${name}: ${/\d+ passed.*/.exec(out)?.[0]}\n`);
  const failed = [...out.matchAll(/✗ (.*)/g)].map(([, rule]) => rule);
  const headers = { "x-request-id": `through-${name}`, "accept-encoding": "gzip" };
  const [direct, proxied] = await Promise.all(
    [ports[0] ?? 0, port].map((each) => fetch(`http://127.0.0.1:${each}/`, { headers })),
  );
  const isSame = ["etag", "content-encoding", "cache-control", "vary", "x-request-id"].every(
    (header) => direct?.headers.get(header) === proxied?.headers.get(header),
  );
  // HAProxy writes its log after the response.
  const isLogged = await waitFor(() => proxy.log().includes(`through-${name}`) || undefined).catch(
    () => false,
  );
  if (Bun.deepEquals(failed, knownFailures[name]) && isSame && isLogged) return;
  process.stdout.write(`${out}\n${JSON.stringify({ isSame, isLogged })}\n`);
  process.exit(1);
}
