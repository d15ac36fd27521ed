/**
 * `npm run prove proxies [restarts] [seed]`: two instances behind nginx and HAProxy are stopped or
 * killed, and started again, one after the other, many times, while clients go on.
 */
import { runProgram, waitFor } from "../../end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { auditStore } from "../audited-store.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { exitOnSignals, prove } from "../proof.ts";
import { makeCaller, RestartedInstance } from "../restarted-instance.ts";
import { listReasons, RetryingClients } from "../retrying-clients.ts";
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

const missing = names.filter((name) => !LoadBalancer.find(name));
if (missing.length > 0) {
  process.stdout.write(`skipped: ${missing.join(" and ")} of Debian are needed\n`);
  process.exit(0);
}
process.stdout.write(`${names.map((name) => LoadBalancer.version(name)).join("; ")}\n`);

const server = await startPostgres();
const database = await makeDatabase(server);
const variables = { PLANTSTORE_DATABASE: database.url };
const makeToken = async (garden: string) =>
  (await runProgram(["token", "create", "gardener", "--garden", garden], variables)).out.trim();
const instances = [new RestartedInstance(database.url), new RestartedInstance(database.url)];
process.on("exit", () => {
  for (const instance of instances) instance.kill();
});
exitOnSignals();
await Promise.all(instances.map((instance) => instance.start()));
const ports = instances.map(({ port }) => port);
const proxies = await Promise.all(names.map((name) => LoadBalancer.start(name, ports)));
let promises = 0;
/** Why requests were repeated, by the proxy and how the instances ended. */
const reasons = new Map<string, Map<string, number>>();

for (const proxy of proxies) await checkContract(proxy);

await prove({
  name: "proxies",
  trials: "rolling restarts",
  count: 12,
  async run(seed) {
    const proxy = proxies[seed % proxies.length] as LoadBalancer;
    const isKilled = seed % 4 >= 2;
    const kind = `${proxy.name}, ${isKilled ? "killed" : "stopped"}`;
    const kindReasons = reasons.get(kind) ?? new Map<string, number>();
    reasons.set(kind, kindReasons);
    const ledger = new Ledger();
    // Several, because the proxies choose an instance by the token.
    const tokens = await Promise.all(Array.from({ length: 4 }, () => makeToken(`of-${seed}`)));
    const clients = new RetryingClients({
      pickPort: () => proxy.port,
      ...{ tokens, ledger, seed, reasons: kindReasons },
      ...{ singles: 12, bulks: 2, slowReaders: 3 },
    });
    for (const instance of instances) {
      await Bun.sleep(apartMs);
      if (isKilled) instance.kill();
      else await instance.stop();
      await Bun.sleep(downMs);
      await instance.start();
    }
    await Bun.sleep(apartMs);
    await clients.stop();
    const plants = await listPlants({ call: makeCaller(proxy.port) }, tokens[0] ?? "");
    const faults = [...ledger.audit(plants), ...(await auditStore(database.url))];
    promises += ledger.promises;
    if (proxy.log().includes("temporary file")) faults.push("nginx wrote to a temporary file");
    const { requests, "with a retry": retried, ...others } = clients.figures;
    const figures = { [`requests (${kind})`]: requests, [`with a retry (${kind})`]: retried };
    return { faults, figures: { ...others, ...figures } };
  },
  async conclude() {
    for (const instance of instances) await instance.stop();
    await server.stop();
    const causes = [...reasons].map(([kind, each]) => `(${kind}) ${listReasons(each)}`);
    return {
      isFault: false,
      text: `${promises} confirmed writes; retried after: ${causes.join("; ")}`,
    };
  },
});

/** The contract holds through the proxy, too, except for what is known. */
async function checkContract(proxy: LoadBalancer): Promise<void> {
  const { name, url, port } = proxy;
  const token = await makeToken("checked");
  const { out } = await runProgram(["check", url], { PLANTSTORE_TOKEN: token });
  process.stdout.write(`${name}: ${/\d+ passed.*/.exec(out)?.[0]}\n`);
  const failed = [...out.matchAll(/✗ (.*)/g)].map(([, rule]) => rule);
  const headers = { "x-request-id": `through-${name}`, "accept-encoding": "gzip" };
  const [direct, proxied] = await Promise.all(
    [ports[0] ?? 0, port].map((each) => makeCaller(each)("GET /", { headers })),
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
