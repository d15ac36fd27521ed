/**
 * The client and responses that the real service cannot be made to send: retries, gateways, other
 * programs.
 */
import { describe, expect, test } from "bun:test";
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
const unavailable = problemAnswer(503, "unavailable");
const notFound = problemAnswer(404, "not-found");
const unauthenticated = problemAnswer(401, "unauthenticated");
const preconditionFailed = problemAnswer(412, "precondition-failed");

/** A 429 that asks the client to wait for so many seconds. */
const rateLimited = (retryAfterSeconds: number) =>
  problemAnswer(429, "rate-limited", { "retry-after": String(retryAfterSeconds) });

/** A response with the plant 7. */
const plantAnswer = (plant: object, etag = '"e"'): ScriptedAnswer => ({
  status: 200,
  headers: { etag },
  body: JSON.stringify({ id: 7, ...plant }),
});

function openStore(service: { url: string }, options: Partial<PlantStoreOptions> = {}) {
  return new PlantStore({ url: service.url, token: "t", ...options });
}

/** A client whose requests go to this function. */
function openStoreOn(
  fetch: (url: string, init: RequestInit) => Promise<Response>,
  options: Partial<PlantStoreOptions> = {},
) {
  return openStore({ url: "http://localhost" }, { fetch, ...options });
}

describe.concurrent("the client, when it retries,", () => {
  test.each([408, 429, 502, 503, 504])(
    "gives up after three tries that get a %i",
    async (status) => {
      await using service = openScriptedService(problemAnswer(status, "internal"));
      const store = openStore(service, { retries: 2 });

      const problem = await problemOf(store.create(draft));

      expect(problem.status).toBe(status);
      expect(service.requests).toHaveLength(3);
    },
  );

  test.each([400, 403, 404, 409, 500, 507])("gives up after the first %i", async (status) => {
    await using service = openScriptedService(problemAnswer(status, "internal"));
    const store = openStore(service, { retries: 2 });

    const problem = await problemOf(store.create(draft));

    expect(problem.status).toBe(status);
    expect(service.requests).toHaveLength(1);
  });

  test("sends each try with the same idempotency key, which the error has, too", async () => {
    await using service = openScriptedService(unavailable);
    const store = openStore(service, { retries: 2 });

    const { idempotencyKey } = await problemOf(store.create(draft));

    expect(idempotencyKey).toMatch(/./);
    expect(service.sentHeaders("idempotency-key")).toEqual(Array(3).fill(idempotencyKey));
  });

  test("throws if it is asked to wait for longer than a minute", async () => {
    await using service = openScriptedService(rateLimited(61), createdAnswer);
    const store = openStore(service);

    const { retryAfterMs } = await problemOf(store.create(draft));

    expect(retryAfterMs).toBe(61_000);
    expect(service.requests).toHaveLength(1);
  });

  test("throws if it is asked to wait longer than its option says", async () => {
    await using service = openScriptedService(rateLimited(2), createdAnswer);
    const store = openStore(service, { retryAfterMsMax: 1_000 });

    const { retryAfterMs } = await problemOf(store.create(draft));

    expect(retryAfterMs).toBe(2_000);
    expect(service.requests).toHaveLength(1);
  });

  test("gives up after one more 429 than it may retry, whatever its other retries", async () => {
    await using service = openScriptedService(rateLimited(0));
    const store = openStore(service, { retries: 9, limitedRetries: 1 });

    expect((await problemOf(store.create(draft))).status).toBe(429);
    expect(service.requests).toHaveLength(2);
  });

  test("retries a 429 even without other retries", async () => {
    await using service = openScriptedService(rateLimited(0), createdAnswer);
    const store = openStore(service, { retries: 0, limitedRetries: 2 });

    expect((await store.create(draft)).id).toBe(7n);
  });

  test("sends a call without retries once, even if it gets a 429", async () => {
    await using service = openScriptedService(rateLimited(0), createdAnswer);
    const store = openStore(service);

    expect((await problemOf(store.create(draft, { retries: 0 }))).status).toBe(429);
    expect(service.requests).toHaveLength(1);
  });
});

describe.concurrent("the client, when it deletes a plant,", () => {
  test("throws a 404 after a 429, which surely deleted nothing", async () => {
    await using service = openScriptedService(rateLimited(0), notFound);

    const { code } = await problemOf(openStore(service).delete(7));

    expect(code).toBe("not-found");
  });

  test("throws a 404 that isn't Plant Store's, even after a lost response", async () => {
    const strangeNotFound = { status: 404, body: "404 page not found" };
    await using service = openScriptedService(unavailable, strangeNotFound);

    const { code } = await problemOf(openStore(service).delete(7));

    expect(code).toBe("unexpected");
  });

  test("remembers a lost response while it asks for a new token", async () => {
    await using service = openScriptedService(unavailable, unauthenticated, notFound);
    const store = openStore(service, { token: () => "t" });

    expect(await store.delete(7)).toEqual({ confirmed: false });
  });
});

describe.concurrent("the client, when a conditional put gets a 412,", () => {
  const put = (service: { url: string }) => openStore(service).put(7, fern, { ifMatch: '"old"' });

  test("returns the plant if it finds there what it put before a lost response", async () => {
    await using service = openScriptedService(
      unavailable,
      preconditionFailed,
      plantAnswer(fern, '"e1"'),
    );

    expect(await put(service)).toEqual({ id: 7n, ...fern, etag: '"e1"', created: false });
  });

  test("reads the plant's weak ETag as a strong one", async () => {
    await using service = openScriptedService(
      unavailable,
      preconditionFailed,
      plantAnswer(fern, 'W/"e1"'),
    );

    expect(await put(service)).toMatchObject({ etag: '"e1"' });
  });

  test("throws if the plant is another after a lost response", async () => {
    const royal = { name: "Royal fern", tag: "pond" };
    await using service = openScriptedService(unavailable, preconditionFailed, plantAnswer(royal));

    expect((await problemOf(put(service))).code).toBe("precondition-failed");
  });

  test("throws if there is no plant after a lost response", async () => {
    await using service = openScriptedService(unavailable, preconditionFailed, notFound);

    expect((await problemOf(put(service))).code).toBe("precondition-failed");
  });

  test("throws if no response was lost", async () => {
    await using service = openScriptedService(
      rateLimited(0),
      preconditionFailed,
      plantAnswer(fern),
    );

    expect((await problemOf(put(service))).code).toBe("precondition-failed");
  });
});

describe.concurrent("the client, when a response leads elsewhere,", () => {
  /** A page that links to the next one, at another address than the service's. */
  const pageBefore = (after: string, items: object[]): ScriptedAnswer => ({
    status: 200,
    headers: { link: `<http://other.invalid/x?limit=1&after=${after}>; rel="next"` },
    body: JSON.stringify(items),
  });
  const lastPage = (items: object[]) => ({ status: 200, body: JSON.stringify(items) });
  const plant = { id: 7, name: "Fern", tag: "" };

  test("does not follow a redirect, which might leak the token", async () => {
    const redirect = { status: 307, headers: { location: "/elsewhere" } };
    await using service = openScriptedService(redirect, createdAnswer);

    const { status, code } = await problemOf(openStore(service).create(draft));

    expect(status).toBe(307);
    expect(code).toBe("unexpected");
    expect(service.requests).toHaveLength(1);
  });

  test("asks for the next page at its own address, with its own parameters", async () => {
    await using service = openScriptedService(pageBefore("9", [plant]), lastPage([]));

    await collect(openStore(service).list({ q: "fern" }));

    expect(service.requests.map(({ path }) => path)).toEqual([
      "/plants?limit=1000&include=id&q=fern",
      "/plants?limit=1000&include=id&after=9&q=fern",
    ]);
  });

  test("goes on after an empty page that has a link", async () => {
    await using service = openScriptedService(pageBefore("5", []), lastPage([plant]));

    const plants = await collect(openStore(service).list({ q: "fern" }));

    expect(plants).toEqual([{ id: 7n, name: "Fern", tag: "" }]);
  });

  test("throws if a page of plants links to itself", async () => {
    await using service = openScriptedService(pageBefore("9", []), pageBefore("9", [plant]));

    const { code } = await problemOf(collect(openStore(service).list({ q: "fern" })));

    expect(code).toBe("unexpected");
    expect(service.requests.map(({ path }) => path)).toEqual([
      "/plants?limit=1000&include=id&q=fern",
      "/plants?limit=1000&include=id&after=9&q=fern",
    ]);
  });

  test("throws if a page of tags links to itself", async () => {
    await using service = openScriptedService(pageBefore("b", [{ tag: "b", plants: 1 }]));

    const { code } = await problemOf(collect(openStore(service).tags({ after: "b" })));

    expect(code).toBe("unexpected");
    expect(service.requests.map(({ path }) => path)).toEqual(["/tags?limit=1000&after=b"]);
  });
});

describe.concurrent("the client, when its token is a function,", () => {
  test("asks for a token once, before the first call", async () => {
    await using service = openScriptedService(createdAnswer);
    let askedCount = 0;
    const token = () => {
      askedCount++;
      return `t${askedCount}`;
    };
    const store = openStore(service, { token });

    await store.create(draft);
    await store.create(draft);

    expect(askedCount).toBe(1);
    expect(service.sentHeaders("authorization")).toEqual(["Bearer t1", "Bearer t1"]);
  });

  test("asks for one new token if two calls get a 401 at once", async () => {
    await using service = openScriptedService(
      createdAnswer,
      unauthenticated,
      unauthenticated,
      createdAnswer,
    );
    let askedCount = 0;
    const token = async () => {
      askedCount++;
      const isFirstToken = askedCount === 1;
      // The second token comes once both calls have been refused.
      while (!isFirstToken && service.requests.length < 3) await pause(5, undefined);
      return isFirstToken ? "old" : "new";
    };
    const store = openStore(service, { token });
    await store.create(draft);

    await Promise.all([store.create(draft), store.create(draft)]);

    expect(askedCount).toBe(2);
    expect(service.sentHeaders("authorization")).toEqual([
      "Bearer old",
      "Bearer old",
      "Bearer old",
      "Bearer new",
      "Bearer new",
    ]);
  });

  test("throws a 401 if the new token is refused, too", async () => {
    await using service = openScriptedService(unauthenticated);
    const tokens = ["old", "new"];
    const store = openStore(service, { token: () => tokens.shift() });

    const { status } = await problemOf(store.create(draft));

    expect(status).toBe(401);
    expect(service.sentHeaders("authorization")).toEqual(["Bearer old", "Bearer new"]);
  });

  test("asks again after the function failed", async () => {
    await using service = openScriptedService(createdAnswer);
    let askedCount = 0;
    const token = async () => {
      askedCount++;
      if (askedCount === 1) throw new RangeError("no sign-in");
      return "t";
    };
    const store = openStore(service, { token });

    await failure(store.create(draft), RangeError);

    expect((await store.create(draft)).id).toBe(7n);
  });

  test("asks again after the function returned nothing", async () => {
    await using service = openScriptedService(createdAnswer);
    const tokens = [undefined, "t"];
    const store = openStore(service, { token: () => tokens.shift() });

    await failure(store.create(draft), TypeError);

    expect((await store.create(draft)).id).toBe(7n);
  });
});

describe.concurrent("the client's deadline", () => {
  const deadlineMs = 50;
  const waitForTwoDeadlines = () => pause(2 * deadlineMs, undefined);
  const plant = { id: 7, name: "Fern", tag: "" };

  test("includes the repetition with a new token, but not the time to get one", async () => {
    const requestMs = 120;
    const tokenMs = 250;
    let requestsCount = 0;
    /** The first request gets a 401 after 120 ms; the next one no response. */
    const fetch = async (_url: string, { signal }: RequestInit) => {
      requestsCount++;
      if (requestsCount === 1) {
        await pause(requestMs, signal ?? undefined);
        return new Response(null, { status: 401 });
      }
      return new Promise<Response>((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
    };
    const token = async () => {
      await pause(tokenMs, undefined);
      return "t";
    };
    const store = openStoreOn(fetch, { token, deadlineMs: 200, retries: 0 });

    const { message } = await failure(store.me(), PlantStoreUnreachable);

    expect(requestsCount).toBe(2);
    const [, waitedMs] = /no response within (\d+) ms/.exec(message) ?? [];
    expect(Number(waitedMs)).toBeLessThanOrEqual(80);
  });

  test("is each page's, not the whole list's", async () => {
    const paths: string[] = [];
    const fetch = async (url: string) => {
      const { pathname, searchParams } = new URL(url);
      paths.push(pathname);
      const isFirst = !searchParams.has("after");
      const link = '</plants?limit=1&after=7>; rel="next"';
      return Response.json([plant], { headers: isFirst ? { link } : {} });
    };
    const store = openStoreOn(fetch, { deadlineMs });

    for await (const page of store.pages({ pageSize: 1 })) {
      expect(page).toHaveLength(1);
      await waitForTwoDeadlines();
    }

    expect(paths).toEqual(["/plants", "/plants"]);
  });

  test("doesn't end a stream of events", async () => {
    const requests: string[] = [];
    const fetch = async (_url: string, { headers }: RequestInit) => {
      if (new Headers(headers).get("accept") !== "text/event-stream") {
        requests.push("page");
        return Response.json([]);
      }
      requests.push("stream");
      const event = `data: ${JSON.stringify({ seq: 1, type: "plant.created", plant })}\n\n`;
      const body = new ReadableStream({
        async pull(controller) {
          await waitForTwoDeadlines();
          controller.enqueue(new TextEncoder().encode(event));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const store = openStoreOn(fetch, { deadlineMs });

    const seen: number[] = [];
    for await (const { seq } of store.events({ after: 0 })) {
      seen.push(seq);
      break;
    }

    expect(seen).toEqual([1]);
    expect(requests).toEqual(["page", "stream"]);
  });
});

describe.concurrent("the client", () => {
  test("sends the caller's headers with every try", async () => {
    await using service = openScriptedService(unavailable, createdAnswer);
    const store = openStore(service, { headers: { "X-Gateway-Key": "k" } });

    await store.create(draft);

    expect(service.sentHeaders("x-gateway-key")).toEqual(["k", "k"]);
  });

  test("prefers its own headers to the caller's", async () => {
    await using service = openScriptedService(unavailable, createdAnswer);
    const headers = { Authorization: "Basic b", "Idempotency-Key": "mine" };
    const store = openStore(service, { headers });

    await store.create(draft, { idempotencyKey: "order-17" });

    expect(service.sentHeaders("authorization")).toEqual(["Bearer t", "Bearer t"]);
    expect(service.sentHeaders("idempotency-key")).toEqual(["order-17", "order-17"]);
  });

  test("reports the responses of all tries, even of one whose body is lost", async () => {
    const brokenBody = new ReadableStream({ start: (body) => body.error(new Error("cut")) });
    const responses = [
      new Response(brokenBody, { headers: { "x-request-id": "r-1" } }),
      new Response("[]", { headers: { "x-request-id": "r-2" } }),
    ];
    const fetch = async () => responses.shift() ?? new Response(null, { status: 500 });
    const seen: ResponseInfo[] = [];
    const store = openStoreOn(fetch, { onResponse: (response) => seen.push(response) });

    await store.page();

    expect(seen).toMatchObject([
      { status: 200, requestId: "r-1" },
      { status: 200, requestId: "r-2" },
    ]);
  });

  test("throws an error of onResponse, and doesn't take it for a lost response", async () => {
    await using service = openScriptedService(createdAnswer);
    const onResponse = () => {
      throw new RangeError("no log");
    };
    const store = openStore(service, { onResponse });

    await failure(store.create(draft), RangeError);

    expect(service.requests).toHaveLength(1);
  });

  test.each([" Bearer t\n", "bearer  t"])("takes a token as it was copied: %j", async (token) => {
    await using service = openScriptedService(createdAnswer);

    await openStore(service, { token }).create(draft);

    expect(service.sentHeaders("authorization")).toEqual(["Bearer t"]);
  });

  test.each(["/v1", "/v1/"])("takes an address with the base path %s", async (basePath) => {
    await using service = openScriptedService(createdAnswer);

    await openStore({ url: service.url + basePath }).create(draft);

    expect(service.requests.map(({ path }) => path)).toEqual(["/v1/plants"]);
  });
});

describe.concurrent("every call of the client reports that something else responded", () => {
  const problemJson = { "content-type": "application/problem+json" };

  test.each<{ what: string; response: ScriptedAnswer }>([
    {
      what: "a sign-in page",
      response: {
        status: 200,
        headers: { "content-type": "text/html" },
        body: "<html>Sign in</html>",
      },
    },
    {
      what: "a created plant without a tag",
      response: { status: 201, headers: { location: "/plants/7" }, body: '{"name":"Fern"}' },
    },
    {
      what: "a created plant without a proper id",
      response: { ...createdAnswer, headers: { location: "/plants/0x7" } },
    },
    {
      what: "a list of plants without ids",
      response: { status: 200, body: '[{"name":"Fern","tag":"shade"}]' },
    },
    {
      what: "a plant whose tag is null",
      response: { status: 200, body: '[{"id":7,"name":"Fern","tag":null}]' },
    },
    {
      what: "a result that isn't in a list",
      response: { status: 200, body: '{"status":201,"id":1}\n' },
    },
    {
      what: "a 404 that isn't a problem",
      response: { status: 404, body: "nothing here" },
    },
    {
      what: "a problem with an error that is null",
      response: {
        status: 400,
        headers: problemJson,
        body: '{"type":"urn:plantstore:problem:invalid-request","detail":"d","errors":[null]}',
      },
    },
    {
      what: "a problem that is null",
      response: { status: 400, headers: problemJson, body: "null" },
    },
  ])("with $what", async ({ response }) => {
    await using service = openScriptedService(response);
    const store = openStore(service);

    const problems = await Promise.all([
      problemOf(collect(store.list())),
      problemOf(store.get(1)),
      problemOf(store.create(draft)),
      problemOf(store.createMany([draft, draft])),
      problemOf(store.put(1, draft)),
      problemOf(store.update(1, draft)),
      problemOf(store.delete(1)),
      problemOf(store.deleteMany([1])),
      problemOf(collect(store.tags())),
    ]);

    for (const { code } of problems) expect(code).toBe("unexpected");
  });
});
