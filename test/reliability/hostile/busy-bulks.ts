/**
 * Bulk requests of invalid lines on raw sockets, in their own process:
 * `bun busy-bulks.ts PORT KIND CONNECTIONS`, with a token in `TOKEN`. Ends when it is killed.
 */
import { connect } from "node:net";

const bodies = {
  "empty lines": "\n".repeat(10_000),
  "unknown fields": `{${Array.from({ length: 8 }, (_, index) => `"${index}":1`)}}\n`.repeat(10_000),
  "one long line": `{"name":"${"x".repeat(1_000_000)}"}`,
};

export type BusyKind = keyof typeof bodies;
export const busyKinds = Object.keys(bodies) as BusyKind[];

if (import.meta.main) {
  const [port, kind, connections] = process.argv.slice(2) as [string, BusyKind, string];
  const body = bodies[kind];
  const request =
    `POST /plants/bulk HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${process.env.TOKEN}\r\n` +
    `Content-Type: application/jsonl\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  for (let count = 0; count < Number(connections); count++) {
    const socket = connect({ host: "127.0.0.1", port: Number(port) }, () => socket.write(request));
    let text = "";
    socket.on("data", (data) => {
      text = text.slice(-10) + data.toString("latin1");
      // The last chunk, or a refusal, which has a length.
      if (!text.endsWith("\r\n0\r\n\r\n") && !text.includes("Content-Length:")) return;
      text = "";
      socket.write(request);
    });
    socket.on("error", () => socket.destroy());
  }
}
