/** JWTs with the real program, on several threads, and an issuer that is down at the start. */
import { afterAll, expect, test } from "bun:test";
import { audience, sign, startIssuer } from "../openid-issuer.ts";
import { startService, waitFor } from "./running-service.ts";

const issuer = startIssuer();
afterAll(() => issuer.stop());

const args = ["--threads", "2", "--jwt-issuer", issuer.url, "--jwt-audience", audience];

test("a service starts while its issuer is down, and accepts JWTs once it is up", async () => {
  const key = await issuer.makeKey("RS256");
  issuer.respond = () => new Response("", { status: 502 });
  await using service = await startService({ args });
  await waitFor(() => service.output().out.includes("issuer key refresh failed") || undefined);
  const token = await sign(
    key,
    issuer.claims(Date.now(), { exp: Math.floor(Date.now() / 1_000) + 600 }),
  );
  const call = () => service.call("GET /plants", { token, headers: { connection: "close" } });
  const unavailable = await call();
  expect([unavailable.status, unavailable.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(await unavailable.text()).not.toContain("127.0.0.1");
  expect((await service.call("GET /plants")).status).toBe(200);
  issuer.respond = undefined;
  await waitFor(async () => {
    const calls = Array.from({ length: 16 }, async () => (await call()).status);
    return (await Promise.all(calls)).every((status) => status === 200) || undefined;
  });
  const { out, errors } = service.output();
  expect(out + errors).not.toContain(token);
});
