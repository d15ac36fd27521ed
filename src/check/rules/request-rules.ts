/**
 * Requests: what a body, a query, a host and an id of a request must be, and the order of checks.
 */
import { expectFaults, expectHeader, expectStatus, expectThat } from "../expectation.ts";
import { picturesOf, titleOf } from "../gallery.ts";
import type { RequestHeaders } from "../line.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";
import { nameMark } from "../tended-garden.ts";

const json = "application/json";

async function refusesType(probe: Probe, ...types: RequestHeaders[]): Promise<void> {
  for (const headers of types) {
    expectStatus(await probe.garden.create(probe.draft("type"), headers), 415);
  }
}

/** `$plant` stands for a good one, `$id` for its id; other characters are bytes. */
async function refusesBody(probe: Probe, ...bodies: string[]): Promise<void> {
  for (const body of bodies) {
    const id = String(probe.freshId());
    const text = body.replace("$plant", '{"name":"$name","id":$id}').replace("$id", id);
    const bytes = Buffer.from(text.replace("$name", nameMark), "latin1");
    expectFaults(await probe.garden.create(bytes), "");
  }
}

/** A host may be refused by what stands before the service, so only the status counts. */
async function refusesHost(probe: Probe, host: readonly string[]): Promise<void> {
  const headers = { Host: host };
  expectStatus(await probe.garden.ask("GET /plants?limit=1", { headers }), 400);
}

const wrongInEveryWay = { body: "{", headers: { "Content-Type": "text/plain" } };

export const requestRules = rulesOf("requests", {
  "a body without Content-Type is 415": (probe) => refusesType(probe, { "Content-Type": [] }),
  "a body of another type than application/json is 415": (probe) =>
    refusesType(
      probe,
      { "Content-Type": "text/plain" },
      { "Content-Type": "application/json-patch+json" },
      { "Content-Type": "application/x-www-form-urlencoded" },
    ),
  "a body in another charset than UTF-8 is 415": (probe) =>
    refusesType(probe, { "Content-Type": `${json}; charset=latin1` }),
  "a body that is encoded is 415": (probe) => refusesType(probe, { "Content-Encoding": "gzip" }),
  "charset=utf-8 may follow the type": async (probe) => {
    for (const type of [`${json}; charset=utf-8`, `${json};charset=UTF-8`]) {
      const answer = await probe.garden.create(probe.draft("charset"), { "Content-Type": type });
      expectStatus(answer, 201);
    }
  },
  "a body that is not JSON is 400": (probe) =>
    refusesBody(probe, "{", "", "$plant{}", "$plant x", "{'name':'Fern'}"),
  "a body that is not valid UTF-8 is 400": (probe) =>
    refusesBody(probe, '{"name":"$name \xc3\x28","id":$id}', '{"name":"$name \xff","id":$id}'),
  "a body that is JSON but no object is 400": (probe) =>
    refusesBody(probe, "[]", "null", "7", '"Fern"', "[$plant]"),
  "an unknown field is 400 and named": async (probe) => {
    const body = { ...probe.draft("unknown field"), colour: "green" };
    expectFaults(await probe.garden.create(body), "/colour");
  },
  "a repeated field is 400 and named": async (probe) => {
    const { id, name } = probe.draft("repeated field");
    const body = `{"name":"first","id":${id},"name":${JSON.stringify(name)}}`;
    expectFaults(await probe.garden.create(body), "/name");
  },
  "an unknown query parameter is 400 and named, in every operation": async (probe) => {
    const { garden } = probe;
    expectFaults(await garden.ask("GET /plants?limit=1&colour=green"), "colour");
    const body = probe.draft("unknown parameter");
    expectFaults(await garden.ask("POST /plants?colour=green", { body }), "colour");
    expectFaults(await garden.ask(`DELETE /plants/${probe.freshId()}?colour=green`), "colour");
  },
  "a repeated query parameter is 400 and named": async ({ garden }) => {
    expectFaults(await garden.ask("GET /plants?limit=1&limit=1"), "limit");
  },
  "a body where none is taken is 400": async (probe) => {
    expectFaults(await probe.garden.ask("GET /plants?limit=1", { body: "{}" }), "");
    expectFaults(await probe.garden.ask(`DELETE /plants/${probe.freshId()}`, { body: "{}" }), "");
  },
  "a body may come in chunks": async (probe) => {
    const text = `{"name":"Fern","id":${probe.freshId()}}`;
    const headers = { "Content-Length": [], "Transfer-Encoding": "chunked" };
    const [first, second] = [text.slice(0, 9), text.slice(9)];
    const chunks = [first, second, ""].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
    expectStatus(await probe.garden.create(chunks.join(""), headers), 201);
  },
  "a Content-Length that is none, or two of them, is 400": async (probe) => {
    for (const length of [["ten"], ["-1"], ["2", "40"]]) {
      const headers = { "Content-Length": length };
      expectStatus(await probe.garden.create(probe.draft("length"), headers), 400);
    }
  },
  "a request without Host is 400": (probe) => refusesHost(probe, []),
  "a request with two Hosts is 400": (probe) =>
    refusesHost(probe, [probe.line.authority, probe.line.authority]),
  "a Host that names no host is 400": (probe) => refusesHost(probe, ["a/b?c"]),
  "the path is checked before the method": async (probe) => {
    expectStatus(await probe.askOpenly("PUT /nothing-here"), 404);
  },
  "the method is checked before the token": async (probe) => {
    expectStatus(await probe.askOpenly("PUT /plants", wrongInEveryWay), 405);
  },
  "the token is checked before type, query and body": async (probe) => {
    expectStatus(await probe.askOpenly("POST /plants?colour=green", wrongInEveryWay), 401);
    expectStatus(await probe.askOpenly("GET /plants?limit=x"), 401);
    expectStatus(await probe.askOpenly("DELETE /plants/x"), 401);
  },
  "the scope is checked before type, query and body": async (probe) => {
    expectStatus(await probe.reader.ask("POST /plants?colour=green", wrongInEveryWay), 403);
    expectStatus(await probe.reader.ask("DELETE /plants/x"), 403);
  },
  "the type is checked before query and body": async ({ garden }) => {
    expectStatus(await garden.ask("POST /plants?colour=green", wrongInEveryWay), 415);
  },
  "every answer carries an X-Request-Id": async (probe) => {
    for (const picture of await picturesOf(probe)) {
      const id = picture.answer.header("X-Request-Id") ?? "";
      expectThat(id !== "", `${titleOf(picture)} has no X-Request-Id`, picture.answer);
    }
  },
  "the caller's X-Request-Id comes back": async (probe) => {
    for (const id of ["a", "A-1._z", "x".repeat(128)]) {
      const headers = { "X-Request-Id": id };
      expectHeader(await probe.askOpenly("GET /healthz", { headers }), "X-Request-Id", id);
      expectHeader(await probe.garden.ask("GET /plants?limit=1", { headers }), "X-Request-Id", id);
    }
  },
  "an X-Request-Id that is not well-formed is replaced": async (probe) => {
    for (const id of ["x".repeat(129), "a b", "a/b", "a,b"]) {
      const headers = { "X-Request-Id": id };
      const answer = await probe.askOpenly("GET /healthz", { headers });
      expectHeader(answer, "X-Request-Id", /^[A-Za-z0-9._-]{1,128}$/);
    }
  },
  "a new X-Request-Id is different each time": async (probe) => {
    const take = async () => (await probe.askOpenly("GET /healthz")).header("X-Request-Id");
    const ids = [await take(), await take(), await take()];
    expectThat(new Set(ids).size === 3, `three requests got the ids ${ids.join(", ")}`);
  },
});
