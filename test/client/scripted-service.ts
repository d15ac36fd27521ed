/** Responds by a script, for what the real service cannot be made to send. */
import { createServer, type IncomingMessage } from "node:http";

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ScriptedService {
  readonly url: string;
  readonly requests: { method: string; url: string; headers: IncomingMessage["headers"] }[];
  close(): void;
}

/** The last response is repeated. */
export async function openScriptedService(...script: ScriptedAnswer[]): Promise<ScriptedService> {
  const requests: ScriptedService["requests"] = [];
  const server = createServer((request, response) => {
    const answer = script[Math.min(requests.length, script.length - 1)] ?? { status: 500 };
    const { method = "", url = "", headers } = request;
    requests.push({ method, url, headers });
    request.resume();
    request.on("end", () => {
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export function problemAnswer(
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): ScriptedAnswer {
  const type = `urn:plantstore:problem:${code}`;
  return {
    status,
    headers: { "content-type": "application/problem+json", ...headers },
    body: JSON.stringify({ type, title: code, status, detail: "Wait.", requestId: "r-1" }),
  };
}

export const createdAnswer: ScriptedAnswer = {
  status: 201,
  headers: { "content-type": "application/json", location: "/plants/7" },
  body: '{"name":"Fern","tag":""}',
};
