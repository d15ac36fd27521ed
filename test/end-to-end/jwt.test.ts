/**
 * JWTs by flags of the real program, on several threads: keys come, go, and may be missing at the
 * start.
 */
import { afterAll, expect, test } from "bun:test";
import { audience, sign, startIssuer } from "../openid-issuer.ts";
import { runProgram, startService, waitFor } from "./running-service.ts";

const issuer = startIssuer();
afterAll(() => issuer.stop());

const args = ["--threads", "2", "--jwt-issuer", issuer.url, "--jwt-audience", audience];

test("starts though its issuer is down, says so, and believes it once it is up", async () => {
  const key = await issuer.makeKey("RS256");
  issuer.respond = () => new Response("", { status: 502 });
  await using service = await startService({ args });
  await waitFor(() => service.output().out.includes("issuer's keys failed") || undefined);
  const token = await sign(
    key,
    issuer.claims(Date.now(), { exp: Math.floor(Date.now() / 1_000) + 600 }),
  );
  const call = () => service.call("GET /plants", { token, headers: { connection: "close" } });
  expect((await call()).status).toBe(503);
  expect((await service.call("GET /plants")).status).toBe(200);
  issuer.respond = undefined;
  await waitFor(async () => {
    const calls = Array.from({ length: 16 }, async () => (await call()).status);
    return (await Promise.all(calls)).every((status) => status === 200) || undefined;
  });
  const { out, errors } = service.output();
  expect(out + errors).not.toContain(token);
});

test.each<[name: string, args: readonly string[], line: RegExp]>([
  ["an issuer without an audience", ["--jwt-issuer", issuer.url], /--jwt-audience is missing/],
  ["an audience without an issuer", ["--jwt-audience", audience], /--jwt-issuer is missing/],
  ["keys without an issuer", ["--jwt-jwks-url", `${issuer.url}/keys`], /--jwt-issuer is missing/],
  ["an issuer without TLS", ["--jwt-issuer", "http://login.example"], /--jwt-issuer must be/],
  ["no signature", ["--jwt-algorithms", "RS256,none"], /--jwt-algorithms must be/],
  ["a shared secret", ["--jwt-algorithms", "HS256"], /--jwt-algorithms must be/],
])("refuses %s in one line", async (_, flags, line) => {
  const run = await runProgram(["serve", "--port", "0", ...flags]);
  expect(run.exitCode).not.toBe(0);
  expect(run.errors.trimEnd()).toMatch(line);
  expect(run.errors.trimEnd().split("\n")).toHaveLength(1);
});
