/** `npm run try:postgres`: a real PostgreSQL and two instances on it, until Ctrl+C. */
import { parseArgs } from "node:util";
import { makeDatabase, startPostgres } from "../testing/postgres-server.ts";
import { makeToken, type RunningService, startService } from "../testing/running-service.ts";

const help = `Runs two instances of Plant Store on a PostgreSQL of its own.

  npm run try:postgres
  npm run try:postgres -- --port 9000

  --port NUMBER   the port of the first instance (8080); the second takes the next one
`;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8080" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return say(help);
  const signal = new Promise<void>((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => resolve());
  });
  await using parts = new AsyncDisposableStack();
  parts.defer(() => say("Stopped, and removed the data."));
  await start(Number(values.port), parts);
  await signal;
  say("\nStopping.");
}

/** Adds to `parts` how to stop each part, as soon as it runs. */
async function start(port: number, parts: AsyncDisposableStack): Promise<void> {
  say("Starting PostgreSQL and two instances.");
  const server = await startPostgres();
  parts.defer(() => server.stop());
  const { url: database } = await makeDatabase(server, "plants");
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
  PostgreSQL     127.0.0.1:${server.port}         data is gone at the end

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
