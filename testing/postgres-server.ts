/**
 * A real PostgreSQL for tests: started when it is first asked for, shared by all test files, and
 * stopped with the process that asked, however that ends. Each test gets a database of its own.
 */
import { join } from "node:path";
import { Client } from "pg";

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;
export type TestDatabase = Awaited<ReturnType<typeof makeDatabase>>;

export const serverPassword = "s3cret-of-the-server";

/** The address of a database, for the role that may do everything. */
function urlOf(port: number, database: string): string {
  return `postgres://postgres:${serverPassword}@127.0.0.1:${port}/${database}`;
}

/** Where a server is, and what it starts with. */
export interface ServerPlace {
  /** Any free one, unless it is given. */
  readonly port?: number | undefined;
  /** Where its data stay after it ends, and may already be. Absent: they are deleted. */
  readonly folder?: string | undefined;
  /** The running server to follow. Absent: it starts empty, as a primary. */
  readonly standbyOf?: { readonly url: string; readonly folder: string } | undefined;
}

/**
 * Its keeper's standard input ends with this process, and then it stops the server and removes its
 * data, unless a folder is given to keep them in. A shell stands between, because the test runner
 * kills its own children when a test is late.
 */
export async function startPostgres(flags: readonly string[] = [], place: ServerPlace = {}) {
  const keeper = join(import.meta.dir, "postgres-keeper.ts");
  const command = [process.execPath, keeper, JSON.stringify(place), ...flags];
  const shell = Bun.spawn(
    ["sh", "-c", 'exec 3<&0; "$@" <&3 & wait', "sh", ...command],
    // In its own process group, so that Ctrl+C doesn't stop the server before its clients.
    // Named, or else Bun passes on the environment that this process started with.
    { env: process.env, stdin: "pipe", stdout: "pipe", stderr: "inherit", detached: true },
  );
  const output = shell.stdout.getReader();
  const text = new TextDecoder().decode((await output.read()).value).trim();
  const [port, pid, ...words] = text.split(" ");
  const folder = words.join(" ");
  if (text.startsWith("failed:") || !port || !pid || !folder) {
    throw new Error(`PostgreSQL did not start${text.replace("failed", "")}`);
  }
  return {
    port: Number(port),
    /** Of the server itself, to be stopped and killed. */
    pid: Number(pid),
    /** Where its data are. */
    folder,
    url: (database: string) => urlOf(Number(port), database),
    async stop(): Promise<void> {
      shell.stdin.end();
      while (!(await output.read()).done);
    },
  };
}

/** For tests only: nothing on it outlives them, so nothing waits for the disk. */
export function startSharedPostgres() {
  const settings = ["fsync=off", "full_page_writes=off", "max_connections=500"];
  return startPostgres(settings.flatMap((setting) => ["-c", setting]));
}

let ownServer: Promise<PostgresServer> | undefined;

/** The server that test/run.ts has started for all test files, or else one of this process. */
async function sharedPostgres(): Promise<Pick<PostgresServer, "url">> {
  const port = Number(process.env.PLANTSTORE_TEST_POSTGRES ?? 0);
  if (port) return { url: (database) => urlOf(port, database) };
  ownServer ??= startSharedPostgres();
  return ownServer;
}

/** On the shared server, unless another one is given. */
export async function makeDatabase(
  server?: PostgresServer,
  name = `test_${crypto.randomUUID().replaceAll("-", "")}`,
) {
  const { url } = server ?? (await sharedPostgres());
  await runStatement(url("postgres"), `CREATE DATABASE ${name}`);
  const drop = async () => {
    await runStatement(url("postgres"), `DROP DATABASE ${name} WITH (FORCE)`);
  };
  return {
    name,
    url: url(name),
    query: (text: string, values?: unknown[]) => runStatement(url(name), text, values),
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

export async function runStatement(
  url: string,
  text: string,
  values?: unknown[],
): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  // If the server stops, the statement fails, too.
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
