/** Opens connections that make one request each and then stay, until the process is stopped. */
import { writeFileSync } from "node:fs";

const [host = "", count = "", donePath = ""] = process.argv.slice(2);
const [hostname = "", port = ""] = host.split(":");
const request = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
/** Opened at a time: few enough for the listener's queue. */
const batch = 100;

function openConnection(): Promise<void> {
  return new Promise((resolve, reject) => {
    Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        open: (socket) => void socket.write(request),
        data: () => resolve(),
        error: (_socket, error) => reject(error),
        close: () => reject(new Error("a connection was closed")),
      },
    }).catch(reject);
  });
}

for (let opened = 0; opened < Number(count); opened += batch) {
  const size = Math.min(batch, Number(count) - opened);
  await Promise.all(Array.from({ length: size }, openConnection));
}
writeFileSync(donePath, "all are open");
