/**
 * `npm run prove x64`: what users download, run on the other architecture (x64, or arm64 where this
 * machine is x64), emulated. With `PLANTSTORE_X64_CACHE=FOLDER` its libraries are kept there.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { build } from "../../../scripts/build.ts";
import { collect, insist, readOutput, waitFor } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Emulator } from "./emulator.ts";

const root = join(import.meta.dir, "../../..");
/** It takes seconds where a start takes 40 ms, and a minute on a busy machine. */
const startMs = 180_000;

const missing = Emulator.missing();
if (missing !== undefined) process.stdout.write(`skipped: ${missing}\n`);

describe.skipIf(missing !== undefined)("on the other architecture", () => {
  const folder = makeTemporaryFolder();
  const programs: Record<string, readonly string[]> = {};
  let emulator: Emulator;

  beforeAll(async () => {
    emulator = await Emulator.prepare(process.env.PLANTSTORE_X64_CACHE ?? folder.path);
    programs.package = await installPackage();
    programs.executable = [join(folder.path, "plantstore")];
    await build(join(folder.path, "plantstore"), `linux-${emulator.name}`);
    const { out } = await run([programs.package[0] ?? "", "-p", "process.arch"]);
    process.stdout.write(`${out.trim()} on ${process.arch}, Bun ${Bun.version}\n`);
    expect(out).toStartWith(emulator.name);
  });
  afterAll(() => folder[Symbol.dispose]());

  /** As `npm install` does on such a machine; the launcher is a script, which qemu doesn't run. */
  async function installPackage(): Promise<readonly string[]> {
    const { path } = folder;
    const packing = Bun.$`npm pack --silent --ignore-scripts --pack-destination ${path}`;
    const file = (await packing.cwd(root).quiet().text()).trim();
    await Bun.write(join(path, "package.json"), '{"private":true}');
    const flags = [`--cpu=${emulator.name}`, "--os=linux", "--libc=glibc", "--no-audit"];
    await Bun.$`npm install ${flags} --ignore-scripts --prefer-offline ./${file}`.cwd(path).quiet();
    const modules = join(path, "node_modules");
    const names = { x64: "bun-linux-x64", arm64: "bun-linux-aarch64" };
    const runtime = names[emulator.name as keyof typeof names];
    return [
      ...[join(modules, "@oven", runtime, "bin/bun"), "--config=/dev/null", "--no-env-file"],
      join(modules, "plantstore/src/main.ts"),
    ];
  }

  function spawn(command: readonly string[], env: Record<string, string> = {}) {
    const options = { cwd: folder.path, stdout: "pipe", stderr: "pipe" } as const;
    return Bun.spawn(emulator.wrap(command), { ...options, env });
  }

  function run(command: readonly string[], env?: Record<string, string>) {
    return readOutput(spawn(command, env));
  }

  /** Starts it on two threads, uses it with its first token, and stops it. */
  async function serve(
    command: readonly string[],
    database: string,
    use: (url: string, token: string) => Promise<void>,
  ): Promise<string> {
    const flags = ["serve", "--port", "0", "--threads", "2", "--log", "json"];
    const patience = { PLANTSTORE_DATABASE_CONNECT_TIMEOUT_MS: "20000" };
    const child = spawn([...command, ...flags], { PLANTSTORE_DATABASE: database, ...patience });
    let written = "";
    const take = (text: string) => {
      written += text;
    };
    const reading = Promise.all([collect(child.stdout, take), collect(child.stderr, take)]);
    try {
      const url = await waitFor(
        () => /"url":"([^"]+)"/.exec(written)?.[1],
        () => child.exitCode !== null && written,
        startMs,
      );
      await use(url, /plant_\w{49}/.exec(written)?.[0] ?? "");
      child.kill("SIGTERM");
      await child.exited;
    } finally {
      child.kill("SIGKILL");
    }
    await reading;
    return written;
  }

  describe.each(["package", "executable"])("the %s", (name) => {
    test.each(["SQLite", "PostgreSQL"])(
      "creates, lists and deletes on %s, and shows the console",
      async (engine) => {
        await using postgres = engine === "SQLite" ? undefined : await makeDatabase();
        const database = postgres?.url ?? join(folder.path, `${name}.db`);
        const command = programs[name] ?? [];
        const written = await serve(command, database, async (url, token) => {
          const headers = {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
          };
          // On a busy machine, a commit may still take longer than the service waits.
          const call = (method: string, path: string, body?: unknown) =>
            insist(() =>
              fetch(url + path, {
                method,
                headers,
                ...(body !== undefined && {
                  headers: { ...headers, "idempotency-key": "fern" },
                  body: JSON.stringify(body),
                }),
              }),
            );
          const created = await call("POST", "/plants", { name: "Fern", tag: "shade", id: 7 });
          expect(created.status).toBe(201);
          const plants = [{ name: "Fern", tag: "shade" }];
          expect(await (await call("GET", "/plants")).json()).toEqual(plants);
          const access = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
          expect((await run([...command, "plants", "list"], access)).out).toContain("Fern");
          expect((await call("DELETE", "/plants/7")).status).toBe(204);
          expect(await (await call("GET", "/plants")).json()).toEqual([]);
          const page = await (await fetch(`${url}/`)).text();
          const assets = page.match(/assets\/[\w.-]+/g) ?? [];
          expect(assets.length).toBeGreaterThan(1);
          for (const asset of assets) expect((await fetch(`${url}/${asset}`)).status).toBe(200);
        });
        expect(written).toContain('"event":"stopped"');
      },
    );
  });
});
