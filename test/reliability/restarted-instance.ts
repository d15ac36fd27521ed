/** An instance of Plant Store on a port that it keeps, through restarts and changes of version. */
import { join } from "node:path";
import type { Subprocess } from "bun";
import { waitFor } from "../end-to-end/running-service.ts";
import { pickPorts } from "../processes.ts";
import type { Caller } from "./plant-client.ts";

/** The checkout that this file is in. */
export const ownVersion = join(import.meta.dir, "../..");

export class RestartedInstance {
  readonly port: number;
  readonly #database: string;
  #process: Subprocess<"ignore", "ignore", "pipe"> | undefined;

  constructor(database: string) {
    this.#database = database;
    [this.port = 0] = pickPorts(1);
  }

  /** Resolves once it is ready. The folder is a checkout of any version, installed. */
  async start(folder = ownVersion): Promise<void> {
    const child = Bun.spawn(
      [join(folder, "bin/plantstore"), "serve", "--port", String(this.port), "--log", "off"],
      {
        env: { PATH: process.env.PATH ?? "", PLANTSTORE_DATABASE: this.#database },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    this.#process = child;
    await waitFor(
      () => this.#isReady(),
      async () => child.exitCode !== null && (await new Response(child.stderr).text()),
    );
  }

  /** As a supervisor does. Fails if it does not end in good order. */
  async stop(): Promise<void> {
    this.#process?.kill("SIGTERM");
    const exitCode = await this.#process?.exited;
    if (exitCode !== 0) throw new Error(`An instance ended with ${exitCode}.`);
  }

  kill(): void {
    this.#process?.kill("SIGKILL");
  }

  async #isReady(): Promise<true | undefined> {
    const url = `http://127.0.0.1:${this.port}/readyz`;
    const response = await fetch(url, { keepalive: false }).catch(() => undefined);
    return response?.status === 200 || undefined;
  }
}

/** Calls what listens on a port. */
export function makeCaller(port: number): Caller["call"] {
  return (request, { token, ...init } = {}) => {
    const [method = "GET", target = "/"] = request.split(" ");
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    if (init.body && !headers.has("content-type")) headers.set("content-type", "application/json");
    return fetch(`http://127.0.0.1:${port}${target}`, { ...init, method, headers });
  };
}
