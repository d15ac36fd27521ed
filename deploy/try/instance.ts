/**
 * One instance of the real program, started again a while after it ended, as a supervisor would.
 */
import { join } from "node:path";

const program = join(import.meta.dir, "../../src/main.ts");
const restartMs = 5_000;
const stopMs = 12_000;

export interface Instance {
  stop(): Promise<void>;
}

export interface InstanceEvents {
  started(pid: number): void;
  /** The reason is what it said last, or how it was ended. */
  ended(reason: string, restartSeconds: number): void;
  answered(line: string): void;
}

export function startInstance(port: number, database: string, events: InstanceEvents): Instance {
  let isStopping = false;
  let child = spawn();
  let restart: Timer | undefined;

  function spawn() {
    const started = Bun.spawn([process.execPath, program, "serve", "--port", String(port)], {
      // In the environment, because other users of the machine can read command lines.
      env: { ...process.env, PLANTSTORE_DATABASE: database, PLANTSTORE_LOG: "json" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    events.started(started.pid);
    readLines(started.stdout, (line) => {
      const answer = describeRequest(line);
      if (answer !== undefined) events.answered(answer);
    });
    const complaint = new Response(started.stderr).text();
    started.exited.then(async (exitCode) => {
      if (isStopping) return;
      const reason = (await complaint).trim() || started.signalCode || `exit code ${exitCode}`;
      events.ended(String(reason), restartMs / 1000);
      restart = setTimeout(() => {
        child = spawn();
      }, restartMs);
    });
    return started;
  }

  return {
    async stop() {
      isStopping = true;
      clearTimeout(restart);
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), stopMs);
      await child.exited;
      clearTimeout(force);
    },
  };
}

/** What a line of the log says of a request; absent if it is about something else. */
function describeRequest(line: string): string | undefined {
  try {
    const { event, method, route, status, durationMs } = JSON.parse(line);
    if (event !== "request" || route === "/readyz") return undefined;
    return `${method} ${route} ${status}, ${Number(durationMs).toFixed(1)} ms`;
  } catch {
    return undefined;
  }
}

async function readLines(
  stream: ReadableStream<Uint8Array>,
  take: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
}
