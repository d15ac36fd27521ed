/** More requests than the service can take: while its storage is stalled, and with long bodies. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { type RunningService, startService } from "../../test/end-to-end/running-service.ts";
import { skipsOutsideLinux } from "../../test/skipping.ts";
import { makePlace } from "../audited-store.ts";
import { flood, stallPostgres, stallSqlite } from "./flood.ts";

test.each(["sqlite", "postgres"] as const)(
  "a flood of creates on a locked %s is bounded",
  async (engine) => {
    await using place = await makePlace(engine);
    const { database } = place;
    await using service = await startService({ args: ["--threads", "1"], database });
    const stall = engine === "sqlite" ? stallSqlite : stallPostgres;
    expect(await flood(service, () => stall(database))).toEqual([]);
  },
  120_000,
);

test.skipIf(skipsOutsideLinux())(
  "long bodies that nobody has room for are refused before they take memory",
  async () => {
    await using service = await startService({ args: ["--threads", "1"] });
    const statuses = await sendLongBodies(service, 600);
    const { 503: refused = 0, 400: invalid = 0 } = statuses;
    expect(refused + invalid).toBe(600);
    // Of 600 MB; what has room is read.
    expect(peakMb(service.pid)).toBeLessThan(200);
  },
  120_000,
);

/** Each on a connection of its own, all at once, in parts. Counts the responses by status. */
async function sendLongBodies(service: RunningService, count: number) {
  const body = " ".repeat(1024 * 1024);
  const request = Buffer.from(
    `POST /plants/bulk HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const statuses: Record<string, number> = {};
  const send = () =>
    new Promise<void>((resolve, reject) => {
      let sent = 0;
      const write = (socket: Bun.Socket) => {
        while (sent < request.length) {
          const written = socket.write(request.subarray(sent, sent + 65_536));
          if (written <= 0) return;
          sent += written;
        }
      };
      Bun.connect({
        hostname: "127.0.0.1",
        port: service.port,
        socket: {
          open: write,
          drain: write,
          data(socket, data) {
            const status = data.toString("latin1", 9, 12);
            statuses[status] = (statuses[status] ?? 0) + 1;
            socket.end();
            resolve();
          },
        },
      }).catch(reject);
    });
  await Promise.all(Array.from({ length: count }, send));
  return statuses;
}

function peakMb(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}
