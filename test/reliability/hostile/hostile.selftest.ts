/** A server that is easily misled fails the suite. */
import { expect, test } from "bun:test";
import { play } from "./battery.ts";
import { type HostileCase, lengthCases } from "./cases.ts";

test("a server that does not know where requests end is found", async () => {
  using careless = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      // Every empty line ends a request, whatever its headers say about a body.
      data(socket, bytes) {
        const requests = bytes.toString("latin1").split("\r\n\r\n").slice(0, -1);
        const id = /X-Request-Id: (\S+)/.exec(bytes.toString("latin1"))?.[1] ?? "none";
        const response = `HTTP/1.1 200 OK\r\nX-Request-Id: ${id}\r\nContent-Length: 0\r\n\r\n`;
        socket.write(response.repeat(requests.length));
      },
    },
  });
  const [smuggling] = lengthCases as [HostileCase];
  const expected: HostileCase = [smuggling[0], smuggling[1], "400 400 open"];
  expect(await play({ port: careless.port, token: "" }, expected)).toBe("200 200 200 open");
});
