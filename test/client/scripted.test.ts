/**
 * The client and responses that the real service cannot be made to send: retries, gateways, other
 * programs.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  PlantStore,
  type PlantStoreOptions,
  PlantStoreUnreachable,
  type ResponseInfo,
} from "../../client/plant-store.ts";
import { pause } from "../../client/send.ts";
import { collect, failure, problemOf } from "./client-case.ts";
import {
  createdAnswer,
  openScriptedService,
  problemAnswer,
  type ScriptedAnswer,
} from "./scripted-service.ts";

const draft = { name: "Fern" };
const fern = { name: "Fern", tag: "shade" };
const lost = problemAnswer(503, "unavailable");
const missing = problemAnswer(404, "not-found");
const expired = problemAnswer(401, "unauthenticated");
const refused = problemAnswer(412, "precondition-failed");

/** A refusal for now, and how long the client is asked to wait. */
const limited = (retryAfter: string) =>
  problemAnswer(429, "rate-limited", { "retry-after": retryAfter });

const plantAnswer = (plant: object, etag = '"e"'): ScriptedAnswer => ({
  status: 200,
  headers: { etag },
  body: JSON.stringify({ id: 7, ...plant }),
});

const services: ReturnType<typeof openScriptedService>[] = [];
afterAll(() => Promise.all(services.map(({ close }) => close())));

/** A service that responds by a script, and a client of it. */
function open(script: readonly ScriptedAnswer[], options: Partial<PlantStoreOptions> = {}) {
  const service = openScriptedService(...script);
  services.push(service);
  const openStore = (others: Partial<PlantStoreOptions> = {}) =>
    new PlantStore({ url: service.url, token: "t", ...others });
  const sent = (name: string) => service.requests.map(({ headers }) => headers.get(name));
  return { ...service, store: openStore(options), openStore, sent };
}

describe.concurrent("it", () => {
  test.each([
    ...[408, 429, 502, 503, 504].map((status) => [status, 3] as const),
    ...[400, 403, 404, 409, 500, 507].map((status) => [status, 1] as const),
  ])("gives up after a %i and %i tries, which have the same key", async (status, tries) => {
    const { store, sent } = open([problemAnswer(status, "internal")], { retries: 2 });
    const problem = await problemOf(store.create(draft));
    expect(problem.status).toBe(status);
    expect(sent("idempotency-key")).toEqual(Array(tries).fill(problem.idempotencyKey));
  });

  test("throws at once when it is asked to wait for longer than it may", async () => {
    const { store, openStore, requests } = open([limited("61"), limited("2"), createdAnswer]);
    expect((await problemOf(store.create(draft))).retryAfterMs).toBe(61_000);
    const hasty = openStore({ retryAfterMsMax: 1_000 });
    expect((await problemOf(hasty.create(draft))).retryAfterMs).toBe(2_000);
    expect(requests).toHaveLength(2);
  });

  test("counts tries that came too soon separately from failed ones", async () => {
    const script = [limited("0"), limited("0"), limited("0"), createdAnswer];
    const { store, openStore } = open(script, { retries: 9, limitedRetries: 1 });
    expect((await problemOf(store.create(draft))).status).toBe(429);
    expect((await openStore({ retries: 0, limitedRetries: 2 }).create(draft)).id).toBe(7n);
  });

  test("sends a call without retries once, even if it came too soon", async () => {
    const { store, requests } = open([limited("0"), createdAnswer]);
    expect((await problemOf(store.create(draft, { retries: 0 }))).status).toBe(429);
    expect(requests).toHaveLength(1);
  });

  test("takes a 404 for a plant that is gone only if it is Plant Store's, after a lost try", async () => {
    const strange = { status: 404, body: "404 page not found" };
    const { store } = open([limited("0"), missing, lost, strange, lost, expired, missing], {
      token: () => "t",
    });
    expect((await problemOf(store.delete(7))).code).toBe("not-found");
    expect((await problemOf(store.delete(7))).code).toBe("unexpected");
    // It remembers the lost response while it asks for a token.
    expect(await store.delete(7)).toEqual({ confirmed: false });
  });

  test("settles a 412 after a lost response by reading; even a weak etag is read as a strong one", async () => {
    const { store } = open([lost, refused, plantAnswer(fern, 'W/"e1"')]);
    const put = await store.put(7, fern, { ifMatch: '"old"' });
    expect(put).toEqual({ id: 7n, ...fern, etag: '"e1"', created: false });
  });

  test.each([
    ["the plant is another", [lost, refused, plantAnswer({ name: "Royal fern", tag: "pond" })]],
    ["there is none", [lost, refused, missing]],
    ["no response was lost", [limited("0"), refused, plantAnswer(fern)]],
  ])("throws a 412 if %s", async (_, script) => {
    const { code } = await problemOf(open(script).store.put(7, fern, { ifMatch: '"old"' }));
    expect(code).toBe("precondition-failed");
  });

  test("does not follow a redirect, which might leak the token", async () => {
    const redirect = { status: 307, headers: { location: "/elsewhere" } };
    const { store, requests } = open([redirect, createdAnswer]);
    const { status, code } = await problemOf(store.create(draft));
    expect([status, code, requests.length]).toEqual([307, "unexpected", 1]);
  });

  test("follows a link at its own address, also from an empty page, and never in a circle", async () => {
    const pageOf = (body: string, after: string | number) => ({
      status: 200,
      headers: { link: `<http://other.invalid/x?limit=1&after=${after}>; rel="next"` },
      body,
    });
    const { store, requests } = open([
      pageOf("[]", 9),
      pageOf('[{"id":7,"name":"Fern","tag":""}]', 9),
      pageOf('[{"tag":"b","plants":1}]', "b"),
    ]);
    for (const list of [store.list({ q: "fern" }), store.tags({ after: "b" })]) {
      expect((await problemOf(collect<unknown>(list))).code).toBe("unexpected");
    }
    expect(requests.map(({ path }) => path)).toEqual([
      "/plants?limit=1000&include=id&q=fern",
      "/plants?limit=1000&include=id&after=9&q=fern",
      "/tags?limit=1000&after=b",
    ]);
  });

  test("asks for a token before the first call and after a 401, once for all calls", async () => {
    const created = createdAnswer;
    const script = [created, expired, expired, created, created, expired, expired];
    const { openStore, requests, sent } = open(script);
    const asked: string[] = [];
    const token = async () => {
      asked.push(`t${asked.length + 1}`);
      // Until both calls have been refused.
      while (asked.length === 2 && requests.length < 3) await pause(5, undefined);
      return asked.at(-1);
    };
    const store = openStore({ token });
    await store.create(draft);
    await Promise.all([store.create(draft), store.create(draft)]);
    expect(asked).toEqual(["t1", "t2"]);
    // A new token that is refused, too, is the caller's problem.
    expect((await problemOf(store.create(draft))).status).toBe(401);
    const expected = ["t1", "t1", "t1", "t2", "t2", "t2", "t3"];
    expect(sent("authorization")).toEqual(expected.map((each) => `Bearer ${each}`));
  });

  test("asks for a token again after it got none", async () => {
    const tokens = [() => Promise.reject(new RangeError("no sign-in")), () => undefined, () => "t"];
    const { store } = open([createdAnswer], { token: () => tokens.shift()?.() });
    await failure(store.create(draft), RangeError);
    await failure(store.create(draft), TypeError);
    expect((await store.create(draft)).id).toBe(7n);
  });

  test("counts a request and its repetition with a new token as one, without asking for it", async () => {
    const responses = [
      () => pause(120, undefined).then(() => new Response(null, { status: 401 })),
      () => new Promise<Response>(() => {}),
    ];
    const fetch = async (_: string, { signal }: RequestInit) => {
      const lost = new Promise<never>((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
      return Promise.race([lost, responses.shift()?.() ?? lost]);
    };
    const token = () => pause(250, undefined).then(() => "t");
    const { openStore } = open([]);
    const call = openStore({ token, fetch, deadlineMs: 200, retries: 0 }).me();
    const { message } = await failure(call, PlantStoreUnreachable);
    expect(Number(/within (\d+) ms/.exec(message)?.[1])).toBeLessThanOrEqual(80);
  });

  test("has a deadline for each request, not for a call of many or for a stream", async () => {
    const deadlineMs = 50;
    const wait = () => pause(2 * deadlineMs, undefined);
    const plant = { id: 7, name: "Fern", tag: "" };
    const asked: string[] = [];
    const fetch = async (target: string, { headers }: RequestInit) => {
      const { pathname, searchParams } = new URL(target);
      const isStream = new Headers(headers).get("accept") === "text/event-stream";
      asked.push(isStream ? "stream" : pathname);
      const isFirst = !searchParams.has("after");
      if (pathname === "/plants") {
        const link = '</plants?limit=1&after=7>; rel="next"';
        return Response.json([plant], { headers: isFirst ? { link } : {} });
      }
      if (!isStream) return Response.json([]);
      const event = `data: ${JSON.stringify({ seq: 1, type: "plant.created", plant })}\n\n`;
      const body = new ReadableStream({
        async pull(controller) {
          await wait();
          controller.enqueue(new TextEncoder().encode(event));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const { openStore } = open([]);
    const store = openStore({ fetch, deadlineMs });
    for await (const page of store.pages({ pageSize: 1 })) {
      expect(page).toHaveLength(1);
      await wait();
    }
    for await (const { seq } of store.events({ after: 0 })) if (seq === 1) break;
    expect(asked).toEqual(["/plants", "/plants", "/events", "stream"]);
  });

  test("sends its headers with every request, but none in the place of its own", async () => {
    const { store, sent } = open([lost, createdAnswer], {
      headers: { "X-Gateway-Key": "k", Authorization: "Basic b", "Idempotency-Key": "mine" },
    });
    await store.create(draft, { idempotencyKey: "order-17" });
    expect(sent("x-gateway-key")).toEqual(["k", "k"]);
    expect(sent("authorization")).toEqual(["Bearer t", "Bearer t"]);
    expect(sent("idempotency-key")).toEqual(["order-17", "order-17"]);
  });

  test("reports the responses of all tries, even of one whose body is lost", async () => {
    const seen: [number, string | undefined][] = [];
    const bodies = [new ReadableStream({ start: (end) => end.error(new Error("cut")) }), "[]"];
    const fetch = async () =>
      new Response(bodies.shift(), { headers: { "x-request-id": `r-${bodies.length}` } });
    const onResponse = ({ status, requestId }: ResponseInfo) => seen.push([status, requestId]);
    const { openStore } = open([]);
    await openStore({ fetch, onResponse }).page();
    expect(seen).toEqual([
      [200, "r-1"],
      [200, "r-0"],
    ]);
  });

  test("takes an error of onResponse for the caller's, not for a lost response", async () => {
    const { store, requests } = open([createdAnswer], {
      onResponse: () => {
        throw new RangeError("no log");
      },
    });
    await failure(store.create(draft), RangeError);
    expect(requests).toHaveLength(1);
  });

  test("takes a token as it was copied, and an address with a base path", async () => {
    const { url, openStore, requests, sent } = open([createdAnswer]);
    await openStore({ url: `${url}/v1`, token: " Bearer t\n" }).create(draft);
    await openStore({ url: `${url}/v1/`, token: "bearer  t" }).create(draft);
    expect(requests.map(({ path }) => path)).toEqual(["/v1/plants", "/v1/plants"]);
    expect(sent("authorization")).toEqual(["Bearer t", "Bearer t"]);
  });

  test.each<ScriptedAnswer>([
    { status: 200, headers: { "content-type": "text/html" }, body: "<html>Sign in</html>" },
    { status: 201, headers: { location: "/plants/7" }, body: '{"name":"Fern"}' },
    { ...createdAnswer, headers: { location: "/plants/0x7" } },
    { status: 200, body: '[{"name":"Fern","tag":"shade"}]' },
    { status: 200, body: '[{"id":7,"name":"Fern","tag":null}]' },
    { status: 200, body: '{"status":201,"id":1}\n' },
    { status: 404, body: "nothing here" },
    ...[
      '{"type":"urn:plantstore:problem:invalid-request","detail":"d","errors":[null]}',
      "null",
    ].map((body) => ({
      status: 400,
      headers: { "content-type": "application/problem+json" },
      body,
    })),
  ])("reports that something else responded: %j", async (answer) => {
    const { store } = open([answer]);
    const calls = [
      collect(store.list()),
      store.get(1),
      store.create(draft),
      store.createMany([draft, draft]),
      store.put(1, draft),
      store.update(1, draft),
      store.delete(1),
      store.deleteMany([1]),
      collect(store.tags()),
    ];
    const problems = await Promise.all(calls.map(problemOf));
    expect(new Set(problems.map(({ code }) => code))).toEqual(new Set(["unexpected"]));
  });
});
