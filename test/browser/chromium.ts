/** Starts Chromium in a process of its own, which ends with this one. */
import { join } from "node:path";

/** Returns where Playwright connects to it, or the reason where no Chromium works. */
export async function startChromium() {
  const server = Bun.spawn(["node", join(import.meta.dir, "chromium-server.mjs")], {
    // Named, or else Bun passes on the environment that this process started with.
    env: process.env,
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
  if (endpoint === "") return (await new Response(server.stderr).text()).trim();
  return {
    endpoint: endpoint.trim(),
    async stop() {
      server.stdin.end();
      await server.exited;
    },
  };
}
