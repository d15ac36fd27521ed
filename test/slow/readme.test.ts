/**
 * Each block of commands in the README works, in a copy of the project and on a free port, with the
 * packages at hand.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readFileSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { readOutput, untilItSays } from "../end-to-end/running-service.ts";
import { skipsWithout } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const root = join(import.meta.dir, "../..");
setDefaultTimeout(120_000);
const folder = makeTemporaryFolder();
const project = join(folder.path, "plantstore");
afterAll(() => folder[Symbol.dispose]());

const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
  .filter(([, language, block = ""]) => language === "sh" || block.startsWith("$ "))
  .map(([, , block = ""]) => block);
const [start = "", ...others] = blocks.filter((block) => !block.includes("npm test"));
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_registry)|^PLANTSTORE_/.test(name),
  ),
);

function withPackagesAtHand(block: string): string {
  return block.replaceAll(/npm ci(?: --omit=dev)? && /g, "");
}

test("without npm ci, the program asks for it", async () => {
  const clone = join(folder.path, "clone");
  for (const path of ["bin/plantstore", "package.json", "package-lock.json"]) {
    cpSync(join(root, path), join(clone, path));
  }
  const run = Bun.spawn([join(clone, "bin/plantstore"), "serve"], {
    env: environment,
    stdout: "pipe",
    stderr: "pipe",
  });
  const { exitCode, errors } = await readOutput(run);
  expect(exitCode).toBe(1);
  expect(errors).toEndWith(`Run this first: cd ${clone} && npm ci --omit=dev\n`);
});

test.skipIf(skipsWithout("curl", "script"))("each block of the README works", async () => {
  const unwanted = /^(?:\.git|data|dist|test)\b|(?:^|\/)node_modules\b/;
  cpSync(root, project, {
    recursive: true,
    filter: (path) => !unwanted.test(relative(root, path)),
  });
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"));
  expect(start).toContain("npm ci --omit=dev && npm start");
  const service = Bun.spawn(["sh", "-euc", withPackagesAtHand(start)], {
    cwd: project,
    env: { ...environment, PLANTSTORE_PORT: "0" },
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const { found: url, written, reading } = await untilItSays(/"url":"([^"]+)"/, service);
  try {
    const token = /plant_\w{49}/.exec(written.errors)?.[0] ?? "";
    const variables = { ...environment, PLANTSTORE_TOKEN: token, PLANTSTORE_URL: url };
    for (const block of others) {
      if (block.startsWith("$ ")) {
        // What a terminal shows. Elsewhere it would be JSON.
        const typed = block.match(/(?<=^\$ ).+/gm) ?? [];
        const lines = typed.map((line) => `echo ${Bun.$.escape(`$ ${line}`)}; ${line}`);
        const shown = Bun.spawnSync(["script", "-qec", lines.join("; "), "/dev/null"], {
          cwd: project,
          env: { ...variables, npm_config_loglevel: "silent", npm_config_progress: "false" },
        });
        expect(shown.stdout.toString().replaceAll("\r", "")).toBe(block);
        continue;
      }
      const commands = withPackagesAtHand(block)
        .replaceAll("localhost:8080", new URL(url).host)
        .replaceAll("http://127.0.0.1:8080", url)
        .replaceAll("curl -i", "curl -is")
        .replaceAll(/ ID\b/g, " $(npx plantstore token list | tail -n 1 | cut -d' ' -f1)");
      const run = Bun.spawn(["sh", "-euc", commands], {
        cwd: project,
        env: variables,
        stdout: "pipe",
        stderr: "pipe",
      });
      const { out, errors, exitCode } = await readOutput(run);
      expect({ block, errors, exitCode }).toMatchObject({ block, exitCode: 0 });
      const answered = out.match(/HTTP\/1.1 2\d\d/g)?.length ?? 0;
      expect(answered).toBe(block.match(/^ *curl/gm)?.length ?? 0);
    }
  } finally {
    // As Ctrl+C does, which reaches all of them.
    process.kill(-service.pid, "SIGINT");
    await reading;
  }
  expect(written.out).toContain('"event":"stopped"');
});
