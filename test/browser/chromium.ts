/** Starts Chromium in a process of its own, which ends with this one. */
import { join } from "node:path";

/** What chromium-server.mjs exits with when there is none for this machine. */
const noChromium = 3;

export interface Chromium {
  /** Where Playwright connects to it. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Absent only where npm has no Chromium for the machine and none is installed. */
export async function startChromium(): Promise<Chromium | undefined> {
  const server = Bun.spawn(["node", join(import.meta.dir, "chromium-server.mjs")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  // It must not keep this process from ending.
  server.unref();
  let endpoint = "";
  for await (const text of server.stdout.pipeThrough(new TextDecoderStream())) {
    endpoint += text;
    if (endpoint.includes("\n")) break;
  }
  if (endpoint === "") {
    if ((await server.exited) === noChromium) return undefined;
    throw new Error(`Chromium did not start. ${await new Response(server.stderr).text()}`);
  }
  return {
    endpoint: endpoint.trim(),
    async stop() {
      server.stdin.end();
      await server.exited;
    },
  };
}
