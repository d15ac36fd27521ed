/** Responds by a script, for what the real service cannot be made to send. */

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The last response is repeated. */
export function openScriptedService(...script: ScriptedAnswer[]) {
  const requests: { path: string; headers: Headers }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url, headers }) {
      const {
        status,
        headers: sent = {},
        body,
      } = script[Math.min(requests.length, script.length - 1)] ?? { status: 500 };
      requests.push({ path: url.slice(new URL(url).origin.length), headers });
      return new Response(body, { status, headers: { ...sent } });
    },
  });
  const close = () => server.stop(true);
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    /** The values that the requests had for a header, in order. */
    sentHeaders: (name: string) => requests.map(({ headers }) => headers.get(name)),
    close,
    [Symbol.asyncDispose]: close,
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
