/**
 * PostgreSQL and, in front of it, PgBouncer in transaction mode, both from the system's packages
 * and both with SCRAM. Everything goes away with this process.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { waitFor } from "../../end-to-end/running-service.ts";
import { runStatement, serverPassword } from "../../postgres-server.ts";
import { pickPorts, send, signalAll } from "../../processes.ts";
import { pgbouncer } from "../../transaction-pooler.ts";
import { findPrograms, makeServerFolder, spawnServer, versionOf } from "../system-servers.ts";

export type Part = "PgBouncer" | "PostgreSQL";
/** Restarted as their packages do it. */
export type Failure = "restarted" | "killed" | "frozen";

/** As in docs/postgresql.md. */
const settings = {
  pool_mode: "transaction",
  auth_type: "scram-sha-256",
  server_login_retry: 1,
  // Not its default: two transactions in a row rarely share a connection.
  server_round_robin: 1,
};

export class PooledPostgres {
  readonly port: number;
  readonly #poolerPort: number;
  readonly #folder: string;
  readonly #programs = findPrograms() ?? "";
  readonly #running = new Map<Part, Subprocess>();

  private constructor() {
    [this.port = 0, this.#poolerPort = 0] = pickPorts(2);
    this.#folder = makeServerFolder();
    process.on("exit", () => this.stop());
  }

  /** What has to be installed; undefined if nothing is missing. */
  static missing(): string | undefined {
    const isThere = pgbouncer && findPrograms();
    return isThere ? undefined : "pgbouncer and postgresql of Debian are needed";
  }

  /** The versions of its parts. */
  static versions(): string {
    return [pgbouncer ?? "", `${findPrograms()}/postgres`]
      .map((program) => versionOf([program, "--version"]))
      .join(", ");
  }

  static async start(): Promise<PooledPostgres> {
    const pooled = new PooledPostgres();
    await pooled.#makeData();
    await pooled.#startPart("PostgreSQL");
    const admin = pooled.#urlOf("postgres", pooled.port, "postgres");
    await runStatement(admin, `CREATE ROLE plants LOGIN PASSWORD '${serverPassword}'`);
    await runStatement(admin, "ALTER ROLE plants SET statement_timeout = '5s'");
    await runStatement(admin, "ALTER ROLE plants SET enable_bitmapscan = off");
    await runStatement(admin, "CREATE DATABASE plants OWNER plants");
    const roles = await runStatement(
      admin,
      "SELECT rolname, rolpassword FROM pg_authid WHERE rolpassword IS NOT NULL",
    );
    pooled.#configure(roles.map(({ rolname, rolpassword }) => `"${rolname}" "${rolpassword}"\n`));
    await pooled.#startPart("PgBouncer");
    return pooled;
  }

  /** Through PgBouncer. */
  get url(): string {
    return this.#urlOf("plants", this.#poolerPort, "plants");
  }

  /** Ends or freezes it. Resolves once it is gone. */
  async fail(part: Part, failure: Failure): Promise<void> {
    const signal = { restarted: "SIGINT", killed: "SIGKILL", frozen: "SIGSTOP" } as const;
    this.#signal(part, signal[failure]);
    if (failure !== "frozen") await this.#running.get(part)?.exited;
  }

  /** Resolves once it takes connections again. */
  async repair(part: Part, failure: Failure): Promise<void> {
    if (failure === "frozen") this.#signal(part, "SIGCONT");
    else await this.#startPart(part);
  }

  stop(): void {
    this.#signal("PgBouncer", "SIGKILL");
    this.#signal("PostgreSQL", "SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  async #startPart(part: Part): Promise<void> {
    const [command, port] =
      part === "PgBouncer"
        ? [[pgbouncer ?? "", join(this.#folder, "pgbouncer.ini")], this.#poolerPort]
        : [[`${this.#programs}/postgres`, "-D", join(this.#folder, "data")], this.port];
    this.#running.set(part, spawnServer(command, join(this.#folder, `${part}.log`)));
    const url = this.#urlOf("postgres", port, "postgres");
    await waitFor(() => runStatement(url, "SELECT 1").catch(() => undefined));
  }

  #signal(part: Part, signal: NodeJS.Signals): void {
    const child = this.#running.get(part);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const isForAll = part === "PostgreSQL" && signal !== "SIGINT";
    if (isForAll) signalAll({ pid: child.pid, folder: this.#folder }, signal);
    else send(child.pid, signal);
  }

  async #makeData(): Promise<void> {
    const passwordFile = join(this.#folder, "password");
    writeFileSync(passwordFile, serverPassword);
    const data = join(this.#folder, "data");
    const options = {
      pgdata: data,
      username: "postgres",
      pwfile: passwordFile,
      auth: "scram-sha-256",
      encoding: "UTF8",
    };
    const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const log = join(this.#folder, "initdb.log");
    const exitCode = await spawnServer([`${this.#programs}/initdb`, ...flags], log).exited;
    if (exitCode !== 0) throw new Error(await Bun.file(log).text());
    // Processes are killed, not machines, so syncs are not needed.
    const lines = [`port = ${this.port}`, "unix_socket_directories = ''", "fsync = off"];
    writeFileSync(join(data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
  }

  /** PgBouncer keeps the verifiers that PostgreSQL has, and no password. */
  #configure(users: readonly string[]): void {
    const usersFile = join(this.#folder, "userlist.txt");
    writeFileSync(usersFile, users.join(""));
    const own = { listen_addr: "127.0.0.1", listen_port: this.#poolerPort, unix_socket_dir: "" };
    const all = { ...own, ...settings, auth_file: usersFile };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    const databases = `[databases]\n* = host=127.0.0.1 port=${this.port}\n`;
    writeFileSync(
      join(this.#folder, "pgbouncer.ini"),
      `${databases}[pgbouncer]\n${lines.join("\n")}\n`,
    );
  }

  #urlOf(user: string, port: number, database: string): string {
    return `postgres://${user}:${serverPassword}@127.0.0.1:${port}/${database}`;
  }
}
