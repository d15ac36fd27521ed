/** A primary that was replaced and comes back, still writable: who is led to it, and who is not. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Storage } from "../../../src/domain/storage.ts";
import { openPostgres } from "../../../src/storage/postgres/engine.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { ServerPair, signalAll } from "./server-pair.ts";

setDefaultTimeout(60_000);

let pair: ServerPair;
let veteran: Storage;

beforeAll(async () => {
  pair = await ServerPair.start();
  await pair.waitForStandby(false);
  veteran = await openPostgres(pair.url, { isServing: true });
  await signalAll(pair.primary, "SIGKILL");
  await pair.promote();
  await pair.standby.startAgain();
});

afterAll(async () => {
  await veteran.close();
  await pair.stop();
});

function write(storage: Storage): Promise<string> {
  return storage.apply([create()]).then(
    () => "stored",
    (error) => error.code,
  );
}

test("whoever starts takes the one that was promoted last, in whatever order the hosts are", async () => {
  const hosts = /127[^/]+/.exec(pair.url)?.[0] ?? "";
  const turned = pair.url.replace(hosts, hosts.split(",").toReversed().join(","));
  for (const url of [pair.url, turned, pair.url, turned]) {
    const storage = await openPostgres(url, { isServing: true });
    expect(await write(storage)).toBe("stored");
    await storage.close();
  }
  expect(await pair.query("SELECT count(*) FROM plants")).toEqual([{ count: "4" }]);
});

test("whoever has seen the new one never goes back, also when that is lost", async () => {
  expect(await write(veteran)).toBe("stored");
  await signalAll(pair.primary, "SIGKILL");
  await write(veteran);
  expect(await write(veteran)).toBe("unavailable");
  await pair.primary.startAgain();
  while ((await write(veteran)) !== "stored") await Bun.sleep(50);
});
