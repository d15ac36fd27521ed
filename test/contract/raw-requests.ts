/** Sends requests to a running service byte for byte, and shows what comes back. */
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { RunningService } from "../../testing/running-service.ts";

/** Ends each line as in HTTP/1.1. */
export const joinLines = (...lines: string[]) => lines.join("\r\n");

/** The status of each response on a connection. */
export function statusesIn(responses: string): number[] {
  return [...responses.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}

export function openSockets(service: RunningService) {
  /** The header with the service's token. */
  const authorization = `Authorization: Bearer ${service.token}`;

  const openSocket = (): Socket => connect(service.port, "127.0.0.1");

  /** Sends lines as they are. Returns all that comes back until the service closes the connection. */
  function send(...lines: string[]): Promise<string> {
    const socket = openSocket();
    socket.write(joinLines(...lines));
    return text(socket);
  }

  /** Sends a request with a valid token and these further lines, and asks to close the connection. */
  function ask(request: string, ...lines: string[]): Promise<string> {
    const headers = ["Host: a", "Connection: close", authorization];
    return send(`${request} HTTP/1.1`, ...headers, ...lines, "", "");
  }

  return { authorization, openSocket, send, ask };
}
