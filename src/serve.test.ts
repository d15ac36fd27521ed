/** What anyone may ask of a whole service, and what it costs. */
import { expect, spyOn, test } from "bun:test";
import { waitFor } from "../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../test/temporary-folder.ts";
import { readConfig } from "./config.ts";
import * as openApi from "./http/openapi.ts";
import { createLog } from "./log.ts";
import { Metrics } from "./metrics.ts";
import { serve } from "./serve.ts";
import * as assembly from "./server/assembly.ts";

test("those who ask for metrics at the same time share them, and the document is made once", async () => {
  using folder = makeTemporaryFolder();
  const flags = { port: "0", threads: "1", database: `${folder.path}/plants.db` };
  const service = await serve(
    readConfig(flags, {}),
    createLog("off", () => {}),
  );
  using render = spyOn(Metrics.prototype, "render");
  using create = spyOn(openApi, "createOpenApi");
  try {
    const ask = async (path: string) => (await fetch(service.url + path)).text();
    const asked = 40;
    const texts = await Promise.all(Array.from({ length: asked }, () => ask("/metrics")));
    for (const text of texts) expect(text).toContain("\nplantstore_build_info");
    expect(render.mock.calls.length).toBeLessThan(asked);
    expect(await ask("/openapi.json")).toBe(await ask("/openapi.json"));
    expect(create.mock.calls).toHaveLength(1);
  } finally {
    await service.stop();
  }
});

test("a service loads what it needs soon after it listens, without being asked", async () => {
  using folder = makeTemporaryFolder();
  using load = spyOn(assembly, "loadLater");
  const flags = { port: "0", threads: "1", database: `${folder.path}/plants.db` };
  const service = await serve(
    readConfig(flags, {}),
    createLog("off", () => {}),
  );
  await waitFor(() => load.mock.calls[0]);
  await service.stop();
  expect(load).toHaveBeenCalledTimes(1);
});
