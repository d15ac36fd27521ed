/** Tokens are sent in the right places and in odd ones, and the program writes none of them. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { KeptConnection, writeRequest } from "../../testing/kept-connection.ts";
import { audience, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { makeToken, runProgram, startService } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

/** Requests that put a token where it belongs, and where it does not. */
function requestsWith(token: string, writer: string): readonly string[] {
  const bearer = { token };
  const allowed = { token: writer };
  const none = { token: "" };
  const body = "{}";
  return [
    writeRequest("GET /plants", bearer),
    writeRequest("GET /plants", { ...none, headers: { Authorization: `Token ${token}` } }),
    writeRequest(`GET /plants?access_token=${token}`, allowed),
    writeRequest(`GET /plants?limit=${token}`, allowed),
    writeRequest(`DELETE /plants/${token}`, allowed),
    writeRequest(`GET /${token}`, none),
    writeRequest("GET /plants", allowed).replace("plants.test", token),
    writeRequest("GET /plants", { ...allowed, headers: { "X-Request-Id": token } }),
    writeRequest("POST /plants", { ...allowed, body, headers: { "Idempotency-Key": token } }),
    writeRequest("POST /plants", { ...allowed, body: `{"name":${token}}` }),
    writeRequest("POST /plants", { ...allowed, body, headers: { "Content-Type": token } }),
    writeRequest("OPTIONS /plants", { ...none, headers: { Origin: `https://${token}.test` } }),
    writeRequest(`${token} /plants`, allowed),
  ];
}

test.each(["json", "text"])(
  "no token is in what it writes, with a log of %s",
  async (log) => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    await using stack = new AsyncDisposableStack();
    const issuer = startIssuer();
    stack.defer(() => issuer.stop());
    const trusted = ["--jwt-issuer", issuer.url, "--jwt-audience", audience];
    const service = stack.use(await startService({ database, args: ["--log", log, ...trusted] }));
    const writer = await makeToken(service, "ann");
    const jwt = await sign(await issuer.makeKey(), issuer.claims(Date.now(), { exp: 1 }));
    const tokens = [writer, jwt];
    const traces = new Map<string, string>();
    for (const token of tokens) {
      for (const text of requestsWith(token, writer)) {
        const connection = await KeptConnection.open({ port: service.port });
        // The runtime sends no response to some malformed requests.
        const response = await connection.ask(text).catch(() => undefined);
        connection.close();
        const shown = `${[...(response?.headers ?? [])].join("\n")}\n${response?.body.toString("latin1")}`;
        traces.set(`the response to ${text.slice(0, 100)}`, shown);
      }
      const list = ["plants", "list", "--url", service.url];
      const { out, errors } = await runProgram(list, { PLANTSTORE_TOKEN: token });
      traces.set("plants list", out + errors);
    }
    traces.set("token list", (await runProgram(["token", "list", "--database", database])).out);
    traces.set("/metrics", await (await service.call("GET /metrics")).text());
    const readFiles = (when: string) => {
      for (const name of readdirSync(folder.path)) {
        traces.set(`${name} ${when}`, readFileSync(join(folder.path, name), "latin1"));
      }
    };
    readFiles("while it runs");
    service.signal("SIGTERM");
    await service.exited;
    readFiles("after it stopped");
    const { out, errors } = service.output();
    traces.set("standard output", out).set("standard error", errors);
    // Long enough to be found nowhere else.
    const secrets = tokens.map((token) => token.slice(-32));
    const found = [...traces].filter(([, text]) => secrets.some((each) => text.includes(each)));
    expect(found.map(([where]) => where)).toEqual([]);
    expect([...traces.keys()]).toContain("plants.db-wal while it runs");
  },
  120_000,
);
