/** Tokens are sent in the right places and in odd ones, and the program writes none of them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { KeptConnection, writeRequest } from "../../testing/kept-connection.ts";
import { audience, sign, startIssuer } from "../../testing/openid-issuer.ts";
import {
  makeToken,
  type RunningService,
  runProgram,
  startService,
} from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

setDefaultTimeout(120_000);

/** Requests that put a secret where a token belongs, and where it does not. */
function writeRequestsWith(secret: string, permitted: string): Readonly<Record<string, string>> {
  const anonymous = "";
  return {
    "as the bearer token": writeRequest("GET /plants", { token: secret }),
    "with an unknown scheme": writeRequest("GET /plants", {
      token: anonymous,
      headers: { Authorization: `Token ${secret}` },
    }),
    "as an unknown parameter": writeRequest(`GET /plants?access_token=${secret}`, {
      token: permitted,
    }),
    "as the value of a parameter": writeRequest(`GET /plants?limit=${secret}`, {
      token: permitted,
    }),
    "as an id": writeRequest(`DELETE /plants/${secret}`, { token: permitted }),
    "as a path": writeRequest(`GET /${secret}`, { token: anonymous }),
    "as the host": writeRequest("GET /plants", { token: permitted }).replace("plants.test", secret),
    "as the request id": writeRequest("GET /plants", {
      token: permitted,
      headers: { "X-Request-Id": secret },
    }),
    "as the idempotency key": writeRequest("POST /plants", {
      token: permitted,
      headers: { "Idempotency-Key": secret },
      body: "{}",
    }),
    "in a malformed body": writeRequest("POST /plants", {
      token: permitted,
      body: `{"name":${secret}}`,
    }),
    "as the content type": writeRequest("POST /plants", {
      token: permitted,
      headers: { "Content-Type": secret },
      body: "{}",
    }),
    "in an origin": writeRequest("OPTIONS /plants", {
      token: anonymous,
      headers: { Origin: `https://${secret}.test` },
    }),
    "as the method": writeRequest(`${secret} /plants`, { token: permitted }),
  };
}

/** Sends a request. Returns the response's headers and body, if there is one. */
async function send(service: RunningService, text: string): Promise<string> {
  const connection = await KeptConnection.open({ port: service.port });
  // The runtime sends no response to some malformed requests.
  const response = await connection.ask(text).catch(() => undefined);
  connection.close();
  if (response === undefined) return "";
  return `${[...response.headers].join("\n")}\n${response.body.toString("latin1")}`;
}

/** Every file, by its name. */
function readFiles(folder: string): Record<string, string> {
  const names = readdirSync(folder);
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(folder, name), "latin1")]),
  );
}

describe.each(["json", "text"])("with a log of %s, no token is in", (log) => {
  const folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const issuer = startIssuer();
  /** The ends of tokens, which are long enough to be found nowhere else. */
  const secrets: string[] = [];
  /** By how the token was sent. */
  const responses: Record<string, string> = {};
  /** By the command, and whose token it had. */
  const commandOutputs: Record<string, string> = {};
  let metrics = "";
  let filesWhileRunning: Record<string, string> = {};
  let filesAfterStop: Record<string, string> = {};
  let serviceOutput = { out: "", errors: "" };

  beforeAll(async () => {
    const trusted = ["--jwt-issuer", issuer.url, "--jwt-audience", audience];
    await using service = await startService({ database, args: ["--log", log, ...trusted] });
    const writer = await makeToken(service, "ann");
    const expired = await sign(await issuer.makeKey(), issuer.claims(Date.now(), { exp: 1 }));

    for (const [kind, token] of Object.entries({ "a writer's token": writer, "a JWT": expired })) {
      secrets.push(token.slice(-32));
      for (const [place, request] of Object.entries(writeRequestsWith(token, writer))) {
        responses[`${kind} ${place}`] = await send(service, request);
      }
      const command = ["plants", "list", "--url", service.url];
      const { out, errors } = await runProgram(command, { PLANTSTORE_TOKEN: token });
      commandOutputs[`plants list with ${kind}`] = out + errors;
    }
    const { out } = await runProgram(["token", "list", "--database", database]);
    commandOutputs["token list"] = out;
    metrics = await (await service.call("GET /metrics")).text();

    filesWhileRunning = readFiles(folder.path);
    service.signal("SIGTERM");
    await service.exited;
    filesAfterStop = readFiles(folder.path);
    serviceOutput = service.output();
  });

  afterAll(async () => {
    await issuer.stop();
    folder[Symbol.dispose]();
  });

  /** The names of the texts that have the end of a token. */
  function findLeaks(texts: Readonly<Record<string, string>>): string[] {
    expect(secrets).toHaveLength(2);
    const leaks = Object.entries(texts).filter(([, text]) =>
      secrets.some((secret) => text.includes(secret)),
    );
    return leaks.map(([name]) => name);
  }

  test("a response, wherever the token was in the request", () => {
    expect(responses["a writer's token as the bearer token"]).toEndWith("[]");
    expect(responses["a JWT as the bearer token"]).toContain("unauthenticated");

    expect(findLeaks(responses)).toEqual([]);
  });

  test("the output of commands", () => {
    expect(commandOutputs["token list"]).toContain("ann");

    expect(findLeaks(commandOutputs)).toEqual([]);
  });

  test("/metrics", () => {
    expect(metrics).toContain("plantstore_requests_total");

    expect(findLeaks({ metrics })).toEqual([]);
  });

  test("the files of the store while it is served", () => {
    expect(Object.keys(filesWhileRunning)).toContain("plants.db-wal");

    expect(findLeaks(filesWhileRunning)).toEqual([]);
  });

  test("the files of the store after the service has stopped", () => {
    expect(Object.keys(filesAfterStop)).toContain("plants.db");

    expect(findLeaks(filesAfterStop)).toEqual([]);
  });

  test("the log and the messages of the service", () => {
    expect(serviceOutput.out).toContain("stopped");

    expect(findLeaks(serviceOutput)).toEqual([]);
  });
});
