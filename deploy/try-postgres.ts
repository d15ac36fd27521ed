/** `npm run try:postgres`: a real PostgreSQL and two instances on it, until Ctrl+C. */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  makeToken,
  type RunningService,
  startService,
} from "../test/end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../test/postgres-server.ts";

const help = `Runs two instances of Plant Store on a PostgreSQL of its own.

  npm run try:postgres
  npm run try:postgres -- --port 9000 --keep my-plants

  --port NUMBER   the port of the first instance (8080); the second takes the next one
  --keep DIR      keep PostgreSQL's data in DIR, and use it again the next time
`;
const databaseName = "plants";
const duplicateDatabase = "42P04";

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8080" },
      keep: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return say(help);
  const signal = new Promise<void>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => resolve());
  });
  await using parts = new AsyncDisposableStack();
  parts.defer(() => say(values.keep ? "Stopped." : "Stopped, and removed the data."));
  await start(Number(values.port), values.keep, parts);
  await signal;
  say("\nStopping.");
}

/** Adds to `parts` how to stop each part, as soon as it runs. */
async function start(
  port: number,
  keep: string | undefined,
  parts: AsyncDisposableStack,
): Promise<void> {
  say("Starting PostgreSQL and two instances.");
  const folder = keep === undefined ? undefined : resolve(keep);
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  const server = await startPostgres([], { folder });
  parts.defer(() => server.stop());
  await makeDatabase(server, databaseName).catch((error) => {
    if (error.code !== duplicateDatabase) throw error;
  });
  const database = server.url(databaseName);
  // Creates the tables, too.
  const token = await makeToken({ database }, "gardener");
  const instances: RunningService[] = [];
  for (const name of ["one", "two"]) {
    const ownPort = port === 0 ? 0 : port + instances.length;
    const instance = await startService({ database, port: ownPort });
    instances.push(instance);
    parts.defer(async () => {
      instance.signal("SIGTERM");
      await instance.exited;
      await instance[Symbol.asyncDispose]();
    });
    instance.exited.then((code) => say(`  instance ${name} has ended (exit code ${code})`));
  }
  const [one, two] = instances as [RunningService, RunningService];
  say(`
  instance one   ${one.url}   pid ${one.pid}
  instance two   ${two.url}   pid ${two.pid}
  PostgreSQL     127.0.0.1:${server.port}         data ${folder ? `in ${folder}` : "is gone at the end"}

In another terminal, create a plant with one instance and list it with the other:

  export PLANTSTORE_TOKEN=${token}

  curl -i ${one.url}/plants -H "Authorization: Bearer $PLANTSTORE_TOKEN" \\
    -H 'Content-Type: application/json' -d '{"name":"Monstera","tag":"living room"}'
  curl -i ${two.url}/plants -H "Authorization: Bearer $PLANTSTORE_TOKEN"

Then kill one. The other goes on with all plants:

  kill -9 ${one.pid}

Stop everything with Ctrl+C.
`);
}

const exitCode = await main().then(
  () => 0,
  (error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`try:postgres: ${reason.trim()}\n`);
    return 1;
  },
);
process.exit(exitCode);
