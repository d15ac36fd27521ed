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
  import { assemble, loadFirst, loadLater } from ${JSON.stringify(join(import.meta.dir, "assembly.ts"))};
  const tracing = { endpoint: "http://127.0.0.1:9", headers: {}, ratio: 1 };
  const jwt = { issuer: "http://127.0.0.1:9", audiences: ["x"], algorithms: ["EdDSA"] };
  const config = { basePath: "", corsOrigins: "*", tracing, jwt };
  const log = { request() {}, event() {} };
  const { app, spans } = assemble(config, { version: () => undefined }, log);
  async function ask() {
    const init = { headers: { host: "x", authorization: "Bearer eyJhbGciOiJFZERTQSJ9.e30.AA" } };
    const paths = ["/", "/docs", "/openapi.json", "/plants"];
    const asked = paths.map((path) => app.fetch(new Request("http://x" + path, init)));
    const answers = await Promise.all(asked);
    await spans.flush();
    return answers.map(({ status }) => status).join();
  }
  await loadFirst(config);
  await loadLater();
  const held = [];
  try {
    for (;;) held.push(openSync("/dev/null"));
  } catch {}
  await ask();
  // With one that is free, a part of what is needed can be opened.
  closeSync(held.pop());
  const between = await ask();
  for (const each of held) closeSync(each);
  // The bundler looks only then again at a folder that it could not read.
  await ask();
  process.stdout.write([between, await ask()].join(" "));
  process.exit();
`;

test("works again once there are descriptors", async () => {
  const { exitCode, out, errors } = await runWithFewDescriptors(script);
  expect([exitCode, errors]).toEqual([0, ""]);
  // Nobody answers where the issuer of the token should be, which is why it is 503.
  expect(out).toMatch(/^\S+ 200,200,200,503$/);
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
