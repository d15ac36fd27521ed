/**
 * Clients may hold all descriptors of a process when something is first asked for. What the runtime
 * cannot open then it takes for missing ever after, or it ends the process.
 */
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { runWithFewDescriptors } from "../../test/few-descriptors.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { readConfig } from "../config.ts";
import { createLog } from "../log.ts";
import { serve } from "../serve.ts";
import * as assembly from "./assembly.ts";

const script = `
  import { closeSync, openSync } from "node:fs";
  import { assemble, loadLater } from ${JSON.stringify(join(import.meta.dir, "assembly.ts"))};
  const tracing = { endpoint: "http://127.0.0.1:9", headers: {}, ratio: 1 };
  const config = { basePath: "", corsOrigins: "*", tracing };
  const log = { request() {}, event() {} };
  const { app, spans } = assemble(config, { version: () => undefined }, log);
  async function ask() {
    const init = { headers: { host: "x" } };
    const paths = ["/", "/docs", "/openapi.json"];
    const asked = paths.map((path) => app.fetch(new Request("http://x" + path, init)));
    const answers = await Promise.all(asked);
    await spans.flush();
    return answers.map(({ status }) => status).join();
  }
  await loadLater(config);
  const held = [];
  try {
    for (;;) held.push(openSync("/dev/null"));
  } catch {}
  await ask();
  // With one that is free, a part of what is needed can be opened.
  closeSync(held.pop());
  await ask();
  for (const each of held) closeSync(each);
  // The bundler looks only then again at a folder that it could not read.
  await ask();
  process.stdout.write(await ask());
  process.exit();
`;

test("what was first asked for without a descriptor left is there when there are some", async () => {
  const answered = { exitCode: 0, out: "200,200,200", errors: "" };
  expect(await runWithFewDescriptors(script)).toEqual(answered);
});

test("a service loads it soon after it listens, without being asked", async () => {
  using folder = makeTemporaryFolder();
  using load = spyOn(assembly, "loadLater");
  const flags = { port: "0", threads: "1", database: join(folder.path, "plants.db") };
  const service = await serve(
    readConfig(flags, {}),
    createLog("off", () => {}),
  );
  await waitFor(() => load.mock.calls[0]);
  await service.stop();
  expect(load).toHaveBeenCalledTimes(1);
});
