/**
 * Records every file operation and every confirmed write of the real program under load: its first
 * start, stops, restarts, commands beside it, and a start after a power cut.
 */
import { realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { makeDice, spread } from "../../dice.ts";
import { runProgram, startService, waitFor } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { InterposedIo, parseCalls } from "../interposed-io/interposed-io.ts";
import { type Entry, isSettled, Ledger } from "../ledger.ts";
import { Workload } from "../workload.ts";
import { Disk, writeImage } from "./disk.ts";
import { databasePath } from "./examination.ts";

/** Stands among the recorded calls. */
export type Note =
  | { readonly kind: "token"; readonly garden: string; readonly token: string }
  | { readonly kind: "entries"; readonly garden: string; readonly entries: readonly Entry[] }
  | { readonly kind: "power cut"; readonly seed: number };

export interface RecordingOptions {
  readonly seed: number;
  /** How many writes are confirmed before a process is stopped. */
  readonly writes: number;
  readonly edits: readonly Edit[];
}

const clients = 10;
/** Of a bulk: several commits, and a recording stays small. */
const linesMax = 300;
const fullSync = 'database.run("PRAGMA synchronous = FULL");';

/** A build that checkpoints after a few pages instead of a thousand. */
export function checkpointOften(pages: number): Edit {
  return {
    file: "storage/sqlite/open.ts",
    text: fullSync,
    by: `${fullSync} database.run("PRAGMA wal_autocheckpoint = ${pages}");`,
  };
}

/** Returns the log of all calls, with notes among them. */
export async function record({ seed, writes, edits }: RecordingOptions): Promise<Buffer> {
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const database = join(root, databasePath);
  using changed = changeProgram(edits);
  using io = new InterposedIo(root);
  const note = (taken: Note) => io.note(taken);
  const tokens = new Map<string, string>();

  function keepToken(garden: string, token: string): void {
    tokens.set(garden, token);
    note({ kind: "token", garden, token });
  }

  async function makeToken(garden: string): Promise<void> {
    const variables = { ...io.variables, PLANTSTORE_DATABASE: database };
    keepToken(garden, (await runProgram(["token", "create", garden], variables)).out.trim());
  }

  /** Clients in every garden, whose ledgers are recorded, until the process gets the signal. */
  async function serve(number: number, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const { program } = changed;
    await using service = await startService({ database, program, variables: io.variables });
    if (service.token !== "") keepToken("gardener", service.token);
    let confirmed = 0;
    const workloads = [...tokens].map(([garden, token], index) => {
      const ledger = new Ledger((entries) => {
        note({ kind: "entries", garden, entries });
        if (entries.every(isSettled)) confirmed++;
      });
      const options = { clients, linesMax, seed: (seed * 3 + number) * 3 + index };
      return new Workload([{ ...service, token }], ledger, options);
    });
    if (number === 0) await makeToken("greenhouse");
    await waitFor(() => confirmed >= writes || undefined);
    service.signal(signal);
    await service.exited;
    await Promise.all(workloads.map((workload) => workload.stop()));
  }

  await serve(0, "SIGTERM");
  // When nothing serves the file, a command is the last to close it, and checkpoints.
  await makeToken("balcony");
  await serve(1, "SIGKILL");
  const disk = new Disk();
  for (const call of parseCalls(io.log())) disk.follow(call);
  note({ kind: "power cut", seed });
  rmSync(join(root, "data"), { recursive: true });
  writeImage(disk.cut(makeDice(spread(seed))), root);
  await serve(2, "SIGTERM");
  return io.log();
}
