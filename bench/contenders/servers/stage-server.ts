/**
 * Plant Store's own parts, put together only up to a stage of a request. What each stage adds to
 * the time of a request shows where the difference to `bare` comes from.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { Authenticator } from "../../../src/auth/authenticator.ts";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import type { Caller } from "../../../src/domain/caller.ts";
import { type PlantDraft, plantDraftSchema } from "../../../src/domain/plant.ts";
import { createPlants } from "../../../src/domain/plants.ts";
import { Admission } from "../../../src/http/admission.ts";
import { checkContentType, hasBody, json, readBody } from "../../../src/http/body.ts";
import { ResponseCache } from "../../../src/http/cache.ts";
import {
  checkHost,
  createRequestIds,
  readBearerToken,
  readTarget,
} from "../../../src/http/request.ts";
import { parseJsonObject } from "../../../src/json-text.ts";
import { createLog } from "../../../src/log.ts";
import { Metrics } from "../../../src/metrics.ts";
import { assemble } from "../../../src/server/assembly.ts";
import { GroupCommit, groupCommitDefaults } from "../../../src/storage/group-commit.ts";
import { openStorage } from "../../../src/storage/open.ts";

const [portText = "", directory = "", operation = "", stageText = ""] = process.argv.slice(2);
const stage = Number(stageText);
const plant = '{"name":"Monstera deliciosa","tag":"living room"}';
const list = `[${Array(20).fill(plant).join(",")}]`;

const storage = await openStorage(join(directory, "plants.db"), { isServing: true });
const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
writeFileSync(join(directory, "token"), token);
const seed = JSON.parse(plant) as { name: string; tag: string };
const write = {
  kind: "create",
  garden: "gardener",
  id: undefined,
  idempotency: undefined,
} as const;
await storage.apply(Array.from({ length: 100 }, () => ({ ...write, ...seed })));

const log = createLog("json", () => {});
const metrics = new Metrics("0");
const authenticator = new Authenticator(storage, Date.now);
const whole = assemble({ basePath: "", corsOrigins: "*" }, storage, log);
for (const each of [authenticator, whole.authenticator]) {
  await each.refresh();
  setInterval(() => each.refresh(), 1_000);
}
const requestIdOf = createRequestIds();
const cache = new ResponseCache();
const writer = new GroupCommit(storage, groupCommitDefaults);
const plants = createPlants({ reader: storage, writer, nowMs: Date.now });
const headers = new Headers({
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "Location, Link, X-Request-Id, Idempotency-Replayed, Retry-After, RateLimit, RateLimit-Policy",
  "Content-Type": "application/json",
  "X-Request-Id": "c6a2f1d09b3e-1",
  ...(operation === "list"
    ? { Link: '</plants?limit=20&after=27>; rel="next"' }
    : { Location: "/plants/1234567" }),
});

async function findCaller(sent: string): Promise<Caller> {
  const caller = authenticator.findCached(sent) ?? (await authenticator.authenticate(sent));
  if (caller instanceof Error) throw caller;
  return caller;
}

function respond(status: number, body: string, own?: Record<string, string>): Response {
  const response = new Response(body, { status, headers });
  for (const name in own) response.headers.set(name, own[name] ?? "");
  return response;
}

function account(request: Request, status: number, requestId: string, startedAtMs: number): void {
  const durationMs = performance.now() - startedAtMs;
  const { method } = request;
  metrics.countRequest(operation, method, status, durationMs);
  const line = { method, route: "/plants", status, durationMs, requestId };
  log.request("info", { ...line, user: "gardener", garden: "gardener" });
}

async function answerList(request: Request): Promise<Response> {
  if (stage === 0) return respond(200, list);
  const startedAtMs = performance.now();
  const { query } = readTarget(request.url);
  if (stage === 1) return respond(200, list);
  checkHost(request.headers.get("host"));
  const requestId = requestIdOf(request.headers);
  hasBody(request.headers);
  const sent = readBearerToken(request.headers) ?? "";
  const caller = await findCaller(sent);
  if (stage === 2) return respond(200, list);
  const key = `${caller.garden}\n${query}`;
  const version = storage.version(caller.garden);
  const cached = version && cache.find(key, version);
  if (version && !cached) cache.add(key, version, { status: 200, body: list });
  const body = cached?.body ?? list;
  if (stage === 3) return respond(200, body as string);
  if (stage >= 5) account(request, 200, requestId, startedAtMs);
  return respond(200, body as string, { "X-Request-Id": requestId });
}

async function answerCreate(request: Request): Promise<Response> {
  if (stage === 0) {
    await request.text();
    return respond(201, plant);
  }
  const startedAtMs = performance.now();
  readTarget(request.url);
  checkHost(request.headers.get("host"));
  const requestId = requestIdOf(request.headers);
  const sent = readBearerToken(request.headers) ?? "";
  const caller = await findCaller(sent);
  checkContentType(request.headers, json);
  if (stage === 1) {
    await request.text();
    return respond(201, plant);
  }
  const text = await readBody(request, json, new Admission().hold(""));
  if (stage === 2) return respond(201, plant);
  const draft = v.parse(plantDraftSchema, parseJsonObject(text)?.members) as PlantDraft;
  if (stage === 3) return respond(201, plant);
  const { id } = await plants.create(caller, draft);
  if (stage === 4) return respond(201, plant);
  account(request, 201, requestId, startedAtMs);
  return respond(201, plant, { "X-Request-Id": requestId, Location: `/plants/${id}` });
}

const stageWhole = 6;
const parts = operation === "list" ? answerList : answerCreate;

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(portText),
  development: false,
  reusePort: false,
  fetch: stage === stageWhole ? (request) => whole.app.fetch(request) : parts,
});
