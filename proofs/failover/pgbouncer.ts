/**
 * `npm run prove failover pgbouncer [failures] [seed]`: the tests of the PostgreSQL engine on the
 * system's PostgreSQL; then PgBouncer in transaction mode, and the PostgreSQL behind it, fail under
 * load.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { makeDice, spread } from "../../test/dice.ts";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { runStatement, serverPassword } from "../../test/postgres-server.ts";
import { pickPorts, send, signalAll } from "../../test/processes.ts";
import { prove } from "../proof.ts";
import { findPrograms, makeServerFolder, spawnServer } from "../system-servers.ts";
import type { Workload } from "../workload.ts";
import { LoadedInstances } from "./loaded-instances.ts";

/** Restarted as their packages do it. A frozen PostgreSQL is in prove.ts. */
const mix = [
  ["PgBouncer", "restarted"],
  ["PostgreSQL", "restarted"],
  ["PgBouncer", "killed"],
  ["PostgreSQL", "killed"],
  ["PgBouncer", "frozen"],
] as const;
const signals = { restarted: "SIGINT", killed: "SIGKILL", frozen: "SIGSTOP" } as const;
/** Longer than the service waits for a response. */
const frozenMs = 7_000;

const programs = findPrograms("pgbouncer", "initdb", "postgres");
const folder = makeServerFolder();
const data = join(folder, "data");
const [serverPort = 0, poolerPort = 0] = pickPorts(2);
const commands = {
  PostgreSQL: { port: serverPort, command: [programs.postgres, "-D", data] },
  PgBouncer: { port: poolerPort, command: [programs.pgbouncer, join(folder, "pgbouncer.ini")] },
};
const running = new Map<string, Subprocess>();

await makeData();
await start("PostgreSQL");
await configurePooler();
await start("PgBouncer");
await runTests();
const url = urlOf("plants", poolerPort, "plants");
const loaded = await LoadedInstances.start(url);

await prove({
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const [part, failure] = mix[seed % mix.length] as (typeof mix)[number];
    const { pid, exited } = running.get(part) as Subprocess;
    let gapMs = 0;
    const fail = async (load: Workload) => {
      await Bun.sleep(500 + dice(1_000));
      if (part === "PostgreSQL" && failure === "killed") signalAll({ pid, folder }, "SIGKILL");
      else send(pid, signals[failure]);
      if (failure !== "frozen") await exited;
      // A package restarts it at once; replacing a killed server takes a while.
      if (failure !== "restarted") await Bun.sleep(failure === "frozen" ? frozenMs : dice(2_000));
      if (failure === "frozen") send(pid, "SIGCONT");
      else await start(part);
      await load.untilWritten();
      await Bun.sleep(300 + dice(500));
      gapMs = Math.round(load.longestGapMs);
      return url;
    };
    const faults = await loaded.audit(seed, fail, true);
    const what = `${part} ${failure}`;
    return { faults, figures: { [what]: 1, [`ms without writes, ${what}`]: gapMs } };
  },
  conclude: () => loaded.stop(),
});

function urlOf(user: string, port: number, database = "postgres"): string {
  return `postgres://${user}:${serverPassword}@127.0.0.1:${port}/${database}`;
}

/** Resolves once it accepts connections. */
async function start(part: keyof typeof commands): Promise<void> {
  const { command, port } = commands[part];
  running.set(part, spawnServer(command, join(folder, `${part}.log`)));
  await waitFor(() => runStatement(urlOf("postgres", port), "SELECT 1").catch(() => undefined));
}

async function makeData(): Promise<void> {
  const [passwordFile, log] = [join(folder, "password"), join(folder, "initdb.log")];
  writeFileSync(passwordFile, serverPassword);
  const flags = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8"];
  const files = [`--pgdata=${data}`, `--pwfile=${passwordFile}`];
  const exitCode = await spawnServer([programs.initdb, ...flags, ...files], log).exited;
  if (exitCode !== 0) throw new Error(await Bun.file(log).text());
  // Processes are killed, not machines, so syncs are not needed.
  const lines = [`port = ${serverPort}`, "unix_socket_directories = ''", "fsync = off"];
  writeFileSync(join(data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
}

/** As in docs/postgresql.md. PgBouncer has PostgreSQL's verifiers, and no password. */
async function configurePooler(): Promise<void> {
  const admin = urlOf("postgres", serverPort);
  await runStatement(admin, `CREATE ROLE plants LOGIN PASSWORD '${serverPassword}'`);
  await runStatement(admin, "ALTER ROLE plants SET statement_timeout = '5s'");
  await runStatement(admin, "ALTER ROLE plants SET enable_bitmapscan = off");
  await runStatement(admin, "ALTER ROLE plants SET enable_seqscan = off");
  await runStatement(admin, "CREATE DATABASE plants OWNER plants");
  const roles = "SELECT rolname, rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL";
  const users = (await runStatement(admin, roles)).map(
    ({ rolname, rolpassword }) => `"${rolname}" "${rolpassword}"\n`,
  );
  writeFileSync(join(folder, "userlist.txt"), users.join(""));
  const lines = [
    `[databases]\n* = host=127.0.0.1 port=${serverPort}\n[pgbouncer]`,
    `listen_addr = 127.0.0.1\nlisten_port = ${poolerPort}\nunix_socket_dir =`,
    "pool_mode = transaction\nauth_type = scram-sha-256",
    `auth_file = ${join(folder, "userlist.txt")}\nserver_login_retry = 1`,
    // Not its default: two transactions in a row rarely share a connection.
    "server_round_robin = 1",
  ];
  writeFileSync(join(folder, "pgbouncer.ini"), `${lines.join("\n")}\n`);
}

/** `npm test` runs them on another version of PostgreSQL. */
async function runTests(): Promise<void> {
  const child = Bun.spawn(
    [process.execPath, "test", "--timeout=60000", "src/storage/postgres", "test/storage"],
    {
      cwd: join(import.meta.dir, "../.."),
      env: { ...process.env, PLANTSTORE_TEST_POSTGRES: String(serverPort) },
      stdout: "ignore",
      stderr: "pipe",
    },
  );
  const output = await new Response(child.stderr).text();
  process.stdout.write(`${/^ *\d+ pass$/m.exec(output)?.[0].trim()} on the system's PostgreSQL\n`);
  if ((await child.exited) === 0) return;
  process.stdout.write(output);
  process.exit(1);
}
