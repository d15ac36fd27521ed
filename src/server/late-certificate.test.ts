/** A certificate that not all threads can show at once, because no descriptor is left to listen. */
import { expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { runWithFewDescriptors } from "../../test/few-descriptors.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";

const certificates = join(import.meta.dir, "../../test/certificates");

test.each([
  ["a thread", 2],
  ["a service", 0],
])("%s that had no descriptor left for it shows the new certificate later", async (_, left) => {
  using folder = makeTemporaryFolder();
  const cert = join(folder.path, "cert.pem");
  const key = join(folder.path, "key.pem");
  copyFileSync(join(certificates, "server.pem"), cert);
  copyFileSync(join(certificates, "server-key.pem"), key);
  const database = join(folder.path, "plants.db");
  const flags = { port: "0", threads: "3", database, "tls-cert": cert, "tls-key": key };
  const source = join(import.meta.dir, "..");
  const script = `
    import { closeSync, copyFileSync, openSync } from "node:fs";
    import { connect } from "node:tls";
    import { readConfig } from "${source}/config.ts";
    import { createLog } from "${source}/log.ts";
    import { serve } from "${source}/serve.ts";
    let lines = "";
    const log = createLog("json", (text) => (lines += text));
    const service = await serve(readConfig(${JSON.stringify(flags)}, {}), log);
    const { port } = new URL(service.url);
    const look = () =>
      new Promise((resolve) => {
        const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.destroy();
        }).on("error", () => resolve("none"));
      });
    const lookOften = async () => new Set(await Promise.all(Array.from({ length: 24 }, look)));
    const [old] = await lookOften();
    copyFileSync("${certificates}/renewed.pem", "${cert}");
    copyFileSync("${certificates}/renewed-key.pem", "${key}");
    await Bun.sleep(500);
    const held = [];
    try {
      for (;;) held.push(openSync("/dev/null"));
    } catch {}
    // Two are enough to read two files, and then for two threads to listen.
    for (let count = 0; count < ${left}; count++) closeSync(held.pop());
    await service.reloadCertificate();
    for (let tries = 0; tries < 100 && !lines.includes("reload failed"); tries++) {
      await Bun.sleep(10);
    }
    for (const each of held) closeSync(each);
    while ((await lookOften()).has(old)) await Bun.sleep(100);
    await service.stop();
    process.exit();
  `;
  expect(await runWithFewDescriptors(script)).toEqual({ exitCode: 0, out: "", errors: "" });
});
