/**
 * `npm run try:postgres`: what compose.yaml describes, on this machine and without containers: a
 * real PostgreSQL, two instances and a load balancer, until Ctrl+C.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeDatabase, startPostgres } from "../../test/postgres-server.ts";
import { pickPorts } from "../../test/processes.ts";
import { startBalancer } from "./balancer.ts";
import { type Instance, startInstance } from "./instance.ts";
import { describeSetting, firstSteps } from "./words.ts";

const help = `Runs two instances of Plant Store on a PostgreSQL of its own, behind a load balancer.

  npm run try:postgres
  npm run try:postgres -- --port 9000 --keep my-plants

  --port NUMBER   where the load balancer listens (8080; 0 takes any free one)
  --keep DIR      keep PostgreSQL's data in DIR, and go on with it the next time
`;

const databaseName = "plants";

function say(text = ""): void {
  process.stdout.write(`${text}\n`);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8080" },
      keep: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    say(help);
    return 0;
  }
  const signal = new Promise<string>((tell) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => tell(name));
  });
  const parts: (() => Promise<void> | void)[] = [];
  try {
    await start(Number(values.port), values.keep, parts);
    await signal;
    say("\nStopping: what is under way is finished first.");
    return 0;
  } finally {
    for (const stop of parts.toReversed()) await stop();
    say(values.keep === undefined ? "All is stopped and removed." : "All is stopped.");
  }
}

/** Adds to `parts` how to stop each part, as soon as it runs. */
async function start(
  port: number,
  keep: string | undefined,
  parts: (() => Promise<void> | void)[],
): Promise<void> {
  // Chosen beforehand, so that an instance comes back where it was.
  const [one = 0, two = 0] = pickPorts(2);
  const backends = [
    { name: "one", port: one },
    { name: "two", port: two },
  ];
  const { promise: allReady, resolve: noteAllReady } = Promise.withResolvers<void>();
  const ready = new Set<string>();
  const balancer = await startBalancer(port, backends, ({ name }, isReady) => {
    tell(name, isReady ? "is ready" : "is not ready: all goes to the other");
    if (isReady && ready.add(name).size === backends.length) noteAllReady();
  });
  parts.push(() => balancer.stop());
  say("Starting PostgreSQL …");
  const folder = keep === undefined ? undefined : resolve(keep);
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  const server = await startPostgres([], { folder });
  parts.push(() => server.stop());
  const isNew = await makeDatabase(server, databaseName).then(
    () => true,
    (error) => (error.code === duplicateDatabase ? false : Promise.reject(error)),
  );
  const database = server.url(databaseName);
  const token = makeToken(database);

  const pids = new Map<string, number>();
  const instances = backends.map(({ name, port: own }): Instance => {
    return startInstance(own, database, {
      started(pid) {
        if (pids.has(name)) tell(name, `is started again, with the pid ${pid}`);
        pids.set(name, pid);
      },
      ended: (reason, seconds) => tell(name, `has ended (${reason}); again in ${seconds} s`),
      answered: (line) => tell(name, line),
    });
  });
  parts.push(async () => {
    balancer.drain();
    await Promise.all(instances.map((instance) => instance.stop()));
  });
  await Promise.race([allReady, Bun.sleep(startMs).then(() => Promise.reject(tooLate))]);
  const url = `http://127.0.0.1:${balancer.port}`;
  say(describeSetting({ url, server, folder, isNew, backends, pids }));
  say(firstSteps(url, token, pids.get("one") ?? 0));
}

const duplicateDatabase = "42P04";
const startMs = 30_000;
const tooLate = new Error("The instances did not become ready.");

function tell(name: string, what: string): void {
  say(`  ${name}  ${what}`);
}

/** Also makes the tables. */
function makeToken(database: string): string {
  const program = join(import.meta.dir, "../../src/main.ts");
  const made = Bun.spawnSync([process.execPath, program, "token", "create", "gardener"], {
    env: { ...process.env, PLANTSTORE_DATABASE: database },
  });
  if (made.exitCode !== 0) throw new Error(made.stderr.toString().trim());
  return made.stdout.toString().trim();
}

const exitCode = await main().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(`try:postgres: ${reason}\n`);
  return 1;
});
process.exit(exitCode);
