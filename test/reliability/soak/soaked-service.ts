/** The real program in a process of its own, which can be asked for what it holds. */
import { join } from "node:path";
import { runProgram, waitFor } from "../../end-to-end/running-service.ts";
import type { Held } from "./collector.ts";

const program = join(import.meta.dir, "../../../src/main.ts");
const collector = join(import.meta.dir, "collector.ts");
/** What goes on behind the last answer, such as the closing of a connection, is over by then. */
const restMs = 500;

export interface SoakedService {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  /** To be asked while no request is under way. */
  collect(): Promise<Held>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startSoakedService(folder: string): Promise<SoakedService> {
  const database = join(folder, "plants.db");
  const made = await runProgram(["token", "create", "soak", "--database", database]);
  const port = findFreePort();
  let onHeld: (held: Held) => void;
  const service = Bun.spawn(
    [
      ...[process.execPath, "--preload", collector, program],
      ...["serve", "--port", `${port}`, "--database", database],
    ],
    {
      env: { PATH: process.env.PATH ?? "" },
      // It writes its log as ever; a place that takes it all is enough.
      stdout: "ignore",
      stderr: "ignore",
      ipc: (held: Held) => onHeld(held),
    },
  );
  const url = `http://127.0.0.1:${port}`;
  await waitFor(async () =>
    (await fetch(`${url}/readyz`).catch(() => null))?.ok ? true : undefined,
  ).catch((error) => {
    service.kill("SIGKILL");
    throw error;
  });

  function ask(): Promise<Held> {
    return new Promise((resolve) => {
      onHeld = resolve;
      service.send("collect");
    });
  }

  return {
    url,
    token: made.out.trim(),
    pid: service.pid,
    /** Twice: what one thread has let go of may have been all that another one's was kept by. */
    async collect() {
      await Bun.sleep(restMs);
      await ask();
      await Bun.sleep(restMs);
      return ask();
    },
    async [Symbol.asyncDispose]() {
      service.kill("SIGKILL");
      await service.exited;
    },
  };
}

function findFreePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
