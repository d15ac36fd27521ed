/** Bytes on the wire that no well-behaved client sends, and the one answer to each. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { allCases } from "./all-cases.ts";
import { play } from "./battery.ts";
import { type HostileCase, victimId } from "./hostile-case.ts";
import { lengthCases } from "./length-cases.ts";

setDefaultTimeout(20_000);

let service: RunningService;

beforeAll(async () => {
  service = await startService();
  await plantVictim();
});

afterAll(() => service[Symbol.asyncDispose]());

for (const [topic, cases] of Object.entries(allCases)) {
  describe(topic, () => {
    test.each(cases)("%s", async (name, sent, outcome) => {
      expect(await play(service, [name, sent, outcome])).toBe(outcome);
      if (outcome.endsWith("closed")) await letWritesPass();
      const left = await clearGarden();
      // What has no answer may have been done; what is refused must not have been.
      if (outcome !== "closed" && !outcome.includes("201")) expect(left).toBe(0);
    });
  });
}

test("there are hundreds of cases, each with a name of its own, and none is answered as a failure", () => {
  const all = Object.values(allCases).flat();
  expect(all.length).toBeGreaterThan(300);
  expect(new Set(all.map(([name]) => name)).size).toBe(all.length);
  // The runtime answers a version of HTTP that it does not know with 505, as it should.
  expect(all.filter(([, , outcome]) => /\b5(?!05)\d\d\b/.test(outcome))).toEqual([]);
});

test("a server that does not know where requests end is found out", async () => {
  using careless = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      // Every empty line ends a request, whatever its headers say of a body.
      data(socket, bytes) {
        const requests = bytes.toString("latin1").split("\r\n\r\n").slice(0, -1);
        const id = /X-Request-Id: (\S+)/.exec(bytes.toString("latin1"))?.[1] ?? "none";
        const answer = `HTTP/1.1 200 OK\r\nX-Request-Id: ${id}\r\nContent-Length: 0\r\n\r\n`;
        socket.write(answer.repeat(requests.length));
      },
    },
  });
  const [hidden] = lengthCases as [HostileCase];
  const open: HostileCase = [hidden[0], hidden[1], "400 400 open"];
  expect(await play({ port: careless.port, token: "" }, open)).toBe("200 200 200 open");
});

function plant(body: string): Promise<Response> {
  return service.call("POST /plants", { body, headers: { Connection: "close" } });
}

function plantVictim(): Promise<Response> {
  return plant(`{"name":"Victim","id":${victimId}}`);
}

/** Writes are committed in their order: those that nobody waits for are done after one more. */
async function letWritesPass(): Promise<void> {
  const id = 1_000_000;
  expect((await plant(`{"name":"Last","id":${id}}`)).status).toBe(201);
  await service.call(`DELETE /plants/${id}`);
}

/**
 * Over a fresh connection: the victim is there, and all other plants go. Tells how many they were.
 */
async function clearGarden(): Promise<number> {
  const headers = { Connection: "close" };
  const response = await service.call("GET /plants?fields=id", { headers });
  const plants = (await response.json()) as { id: number }[];
  const others = plants.filter(({ id }) => id !== victimId);
  if (others.length === plants.length) await plantVictim();
  for (const { id } of others) await service.call(`DELETE /plants/${id}`);
  expect([response.status, plants.length - others.length]).toEqual([200, 1]);
  return others.length;
}
