/** The Python of docs/client.md, as it stands. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { readOutput, serveHere } from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const service = await serveHere();
const folder = makeTemporaryFolder();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

test.skipIf(skipsWithout("python3"))(
  "adds a plant once although a response is lost, lists all pages, and prints what is wrong",
  async () => {
    const page = await Bun.file(join(import.meta.dir, "../../docs/client.md")).text();
    const [, program = ""] = /^```python\n([^`]*)^```$/m.exec(page) ?? [];
    const path = join(folder.path, "plants.py");
    await Bun.write(path, program);
    const proxy = await FaultyProxy.open(service.url);
    const run = (name: string) => {
      const env = { ...process.env, PLANTSTORE_URL: proxy.url, PLANTSTORE_TOKEN: service.token };
      return readOutput(
        Bun.spawn(["python3", path, name], { env, stdout: "pipe", stderr: "pipe" }),
      );
    };
    try {
      const moss = Array.from({ length: 1_500 }, () => ({ name: "Moss" }));
      await new PlantStore({ url: service.url, token: service.token }).createMany(moss);
      proxy.breakNext("after", "before");
      const { out, errors, exitCode } = await run("Fern");
      expect([exitCode, errors]).toEqual([0, ""]);
      const [added, ...plants] = out.trimEnd().split("\n");
      expect(added).toBe("Added /plants/1501");
      expect([plants.length, plants[0], plants.at(-1)]).toEqual([1_501, "1 Moss", "1501 Fern"]);
      expect(await run("")).toEqual({ exitCode: 1, out: "", errors: "name must not be empty.\n" });
    } finally {
      proxy.close();
    }
  },
);
