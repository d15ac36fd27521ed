/** Copies the data of a running server for a standby. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";

export interface Original {
  readonly url: string;
  readonly folder: string;
}

/** Belongs to the running process, or comes by replication. */
const left = ["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "standby.signal"];

/** Like `pg_basebackup`, which the test package lacks. Writes can go on while it runs. */
export async function copyAsStandby(original: Original, folder: string): Promise<void> {
  const client = new Client(original.url);
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', fast => true)");
    // A file that is deleted during the copy does no harm.
    await Bun.spawn(["cp", "-a", `${original.folder}/.`, folder], { stderr: "ignore" }).exited;
    for (const name of left) rmSync(join(folder, name), { recursive: true, force: true });
    const { rows } = await client.query(
      "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)",
    );
    writeFileSync(join(folder, "backup_label"), rows[0].labelfile);
  } finally {
    await client.end();
  }
  const { hostname, port, username, password } = new URL(original.url);
  const primary = `host=${hostname} port=${port} user=${username} password=${password}`;
  // Replaces the primary's own settings, such as the standby that it waits for.
  writeFileSync(join(folder, "postgresql.auto.conf"), `primary_conninfo = '${primary}'\n`);
  writeFileSync(join(folder, "standby.signal"), "");
  for (const name of ["pg_wal", "pg_replslot"]) mkdirSync(join(folder, name), { mode: 0o700 });
  // If the tests run as root, the server runs as another user.
  if (process.getuid?.() !== 0) return;
  await Bun.spawn(["chown", "-R", `--reference=${original.folder}`, folder]).exited;
}
