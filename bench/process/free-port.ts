/** Finds a port of the loopback address that nobody listens on. */

export const loopback = "127.0.0.1";

export function findFreePort(): number {
  const listener = Bun.listen({ hostname: loopback, port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
