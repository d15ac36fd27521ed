/** Surface: which paths there are, and which methods they take. */
import { expectItems, expectStatus, expectThat } from "../expectation.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

/** Not DELETE on /plants: a service that takes it might take it for all plants. */
const otherMethods = ["PUT", "PATCH"];
const openPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz", "/metrics"];

async function refusesMethods(
  probe: Probe,
  paths: readonly string[],
  methods: readonly string[],
  allow: readonly string[],
): Promise<void> {
  for (const path of paths) {
    for (const method of methods) {
      const answer = await probe.askOpenly(`${method} ${path}`);
      expectStatus(answer, 405);
      expectItems(answer, "Allow", allow);
      const surplus = answer.items("Allow").filter((item) => !allow.includes(item.toUpperCase()));
      expectThat(surplus.length === 0, `Allow must not name ${surplus.join(", ")}`, answer);
    }
  }
}

/** The same status and headers as GET, and not one byte of a body. */
async function answersHead(probe: Probe, path: string): Promise<void> {
  const { token } = probe.garden;
  const get = await probe.askOpenly(`GET ${path}`, { token });
  const head = await probe.askOpenly(`HEAD ${path}`, { token });
  expectStatus(head, get.status);
  expectThat(head.surplusBytes === 0, `${head.surplusBytes} bytes of a body came`, head);
  const type = get.header("Content-Type");
  expectThat(head.header("Content-Type") === type, `Content-Type must be ${type}, as of GET`, head);
}

export const surfaceRules = rulesOf("surface", {
  "GET /plants is 200": async ({ garden }) => {
    expectStatus(await garden.ask("GET /plants?limit=1"), 200);
  },
  "HEAD /plants is as GET, without a body": (probe) => answersHead(probe, "/plants?limit=1"),
  "HEAD of the open paths is as GET, without a body": async (probe) => {
    for (const path of openPaths) await answersHead(probe, path);
  },
  "a path of no operation is 404": async (probe) => {
    const { token } = probe.garden;
    for (const path of ["/nothing-here", "/plants/", "/plants/1/2", "/Plants", "/plants;a=1"]) {
      expectStatus(await probe.askOpenly(`GET ${path}`, { token }), 404);
    }
  },
  "another method on /plants is 405, with Allow": (probe) =>
    refusesMethods(probe, ["/plants"], otherMethods, ["GET", "HEAD", "POST", "OPTIONS"]),
  "another method on /plants/{id} is 405, with Allow": (probe) =>
    refusesMethods(
      probe,
      [`/plants/${probe.freshId()}`],
      ["GET", "POST", "PUT", "PATCH"],
      ["DELETE", "OPTIONS"],
    ),
  "another method on an open path is 405, with Allow": (probe) =>
    refusesMethods(probe, openPaths, ["POST", "PUT"], ["GET", "HEAD"]),
  "OPTIONS needs no token": async (probe) => {
    for (const path of ["/plants", `/plants/${probe.freshId()}`]) {
      expectStatus(await probe.askOpenly(`OPTIONS ${path}`), 204);
    }
  },
});
