/** What a whole service loads, and when. */
import { expect, spyOn, test } from "bun:test";
import { makeTemporaryFolder } from "../test/temporary-folder.ts";
import { readConfig } from "./config.ts";
import * as openApi from "./http/openapi.ts";
import { createLog } from "./log.ts";
import { serve } from "./serve.ts";

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
