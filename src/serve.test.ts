/** What a whole service loads, and when. */
import { expect, spyOn, test } from "bun:test";
import { waitFor } from "../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../test/temporary-folder.ts";
import { readConfig } from "./config.ts";
import * as openApi from "./http/openapi.ts";
import { createLog } from "./log.ts";
import { serve } from "./serve.ts";
import * as assembly from "./server/assembly.ts";

test("the OpenAPI document is rendered once", async () => {
  using folder = makeTemporaryFolder();
  const flags = { port: "0", threads: "1", database: `${folder.path}/plants.db` };
  const service = await serve(
    readConfig(flags, {}),
    createLog("off", () => {}),
  );
  using create = spyOn(openApi, "createOpenApi");
  try {
    const ask = async (path: string) => (await fetch(service.url + path)).text();
    expect(await ask("/openapi.json")).toBe(await ask("/openapi.json"));
    expect(create.mock.calls).toHaveLength(1);
  } finally {
    await service.stop();
  }
});

test("a service loads what it needs soon after it listens, without being asked", async () => {
  using folder = makeTemporaryFolder();
  using load = spyOn(assembly, "loadOpenApi");
  const flags = { port: "0", threads: "1", database: `${folder.path}/plants.db` };
  const service = await serve(
    readConfig(flags, {}),
    createLog("off", () => {}),
  );
  await waitFor(() => load.mock.calls[0]);
  await service.stop();
  expect(load).toHaveBeenCalledTimes(1);
});
