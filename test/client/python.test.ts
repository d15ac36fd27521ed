/** The Python of docs/client.md, as it stands. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { makeTokens, readOutput, serveHere } from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

describe.skipIf(skipsWithout("python3"))("the Python program of the documentation", () => {
  const folder = makeTemporaryFolder();
  const program = join(folder.path, "plants.py");
  let service: Awaited<ReturnType<typeof serveHere>>;
  let proxy: FaultyProxy;
  let unusedTokens: string[];
  let token: string;

  beforeAll(async () => {
    const page = await Bun.file(join(import.meta.dir, "../../docs/client.md")).text();
    const [, block = ""] = /^```python\n([^`]*)^```$/m.exec(page) ?? [];
    await Bun.write(program, block);
    service = await serveHere();
    unusedTokens = await makeTokens(service, "python", 3);
  });
  beforeEach(async () => {
    token = unusedTokens.shift() ?? "";
    proxy = await FaultyProxy.open(service.url);
  });
  afterEach(() => proxy.close());
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const openStore = () => new PlantStore({ url: service.url, token });

  /** Adds a plant of this name, and lists all plants. */
  function runProgram(name: string) {
    const child = Bun.spawn(["python3", program, name], {
      env: { ...process.env, PLANTSTORE_URL: proxy.url, PLANTSTORE_TOKEN: token },
      stdout: "pipe",
      stderr: "pipe",
    });
    return readOutput(child);
  }

  test("adds a plant once, although a response and then a request are lost", async () => {
    proxy.breakNext("after", "before");

    const { out, errors, exitCode } = await runProgram("Fern");

    expect(errors).toBe("");
    expect(exitCode).toBe(0);
    expect(out).toBe("Added /plants/1\n1 Fern\n");
    expect((await openStore().me()).plants).toBe(1);
  });

  test("lists the plants of all pages", async () => {
    const moss = Array.from({ length: 1_500 }, () => ({ name: "Moss" }));
    await openStore().createMany(moss);

    const { out } = await runProgram("Fern");

    const [added, ...plants] = out.trimEnd().split("\n");
    expect(added).toBe("Added /plants/1501");
    expect(plants).toHaveLength(1_501);
    expect(plants[0]).toBe("1 Moss");
    expect(plants.at(-1)).toBe("1501 Fern");
  });

  test("prints what is wrong with a plant", async () => {
    const { out, errors, exitCode } = await runProgram("");

    expect(exitCode).toBe(1);
    expect(out).toBe("");
    expect(errors).toBe("name must not be empty.\n");
  });
});
