/**
 * Every query of the dashboard and of the alerts, against the metrics of a real service under load.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parser } from "@prometheus-io/lezer-promql";
import { type RunningService, startService } from "../test/end-to-end/running-service.ts";
import { audience, startIssuer } from "../test/openid-issuer.ts";
import { makeDatabase, type TestDatabase } from "../test/postgres-server.ts";

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly annotations: Readonly<Record<string, string>>;
    }[];
  }[];
}

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly expr: string }[];
  };
}

const read = (name: string) => readFileSync(join(import.meta.dir, "monitoring", name), "utf8");
const alerts = (Bun.YAML.parse(read("alerts.yaml")) as Rules).groups.flatMap(({ rules }) => rules);
const dashboard = JSON.parse(read("dashboard.json")) as Dashboard;

const queries: [name: string, query: string][] = [
  ...alerts.map(({ alert, expr }): [string, string] => [alert, expr]),
  ...dashboard.annotations.list.map(({ name, expr }): [string, string] => [name, expr]),
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }, index): [string, string] => [`${title}, ${index + 1}`, expr]),
  ),
];

/** What Prometheus itself adds, or knows of every target. */
const ownMetrics = new Set(["up"]);
const ownLabels = new Set(["job", "instance", "le"]);

interface Selector {
  readonly metric: string;
  readonly matchers: readonly {
    readonly label: string;
    readonly operator: string;
    value: string;
  }[];
}

/** Fails on what is not PromQL. Grafana's variables are replaced as it would. */
function readSelectors(query: string): Selector[] {
  const text = query.replaceAll("$__rate_interval", "5m").replace(/\$\w+/g, ".*");
  const selectors: { metric: string; matchers: Selector["matchers"][number][] }[] = [];
  parser.parse(text).iterate({
    enter(node) {
      const part = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`"${text}" is wrong at ${node.from}.`);
      if (node.name === "VectorSelector") selectors.push({ metric: "", matchers: [] });
      const selector = selectors.at(-1);
      if (!selector) return;
      if (node.name === "Identifier" && selector.metric === "") selector.metric = part;
      const [, label, operator, value] = /^(\w+)\s*([=!~]+)\s*"(.*)"$/s.exec(part) ?? [];
      if (node.name === "UnquotedLabelMatcher" && label && operator && value !== undefined) {
        selector.matchers.push({ label, operator, value });
      }
    },
  });
  return selectors;
}

const certificate = (name: string) => join(import.meta.dir, "../test/certificates", name);
const issuer = startIssuer();
let database: TestDatabase;
let service: RunningService;
/** With what the other one lacks: a pool, a certificate, an issuer. */
let secure: RunningService;
/** The samples of the service, by metric: their labels. */
const samples = new Map<string, Record<string, string>[]>();

beforeAll(async () => {
  service = await startService({
    args: ["--rate-limit", "60/d", "--garden-plants-max", "5", "--threads", "1"],
  });
  await Promise.all(
    Array.from({ length: 8 }, () =>
      service.call("POST /plants", { body: '{"name":"Fern"}' }).then((answer) => answer.text()),
    ),
  );
  await service.call("DELETE /plants/1");
  for (let count = 0; count < 60; count++) await service.call("GET /plants?limit=2");
  await issuer.makeKey();
  database = await makeDatabase();
  secure = await startService({
    database: database.url,
    args: [
      ...["--tls-cert", certificate("server.pem"), "--tls-key", certificate("server-key.pem")],
      ...["--jwt-issuer", issuer.url, "--jwt-audience", audience, "--threads", "2"],
    ],
  });
  await readSamples(service);
  await readSamples(secure);
});

async function readSamples({ url }: RunningService): Promise<void> {
  const response = await fetch(`${url}/metrics`, { tls: { rejectUnauthorized: false } });
  const text = await response.text();
  for (const [, metric = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    const known = samples.get(metric) ?? [];
    samples.set(metric, [...known, Object.fromEntries(pairs)]);
  }
}

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await secure[Symbol.asyncDispose]();
  await database.drop();
  await issuer.stop();
});

test("a query that is wrong, and one for what there is not, are found", () => {
  expect(() => readSelectors("rate(plantstore_requests_total[5m]")).toThrow("is wrong");
  expect(readSelectors('sum(rate(nothing{a=~"b"}[5m]))')).toEqual([
    { metric: "nothing", matchers: [{ label: "a", operator: "=~", value: "b" }] },
  ]);
});

describe("every metric that is asked for is there under load, with the labels that are asked for", () => {
  test.each(queries)("%s", (_, query) => {
    const selectors = readSelectors(query);
    expect(selectors.length).toBeGreaterThan(0);
    for (const { metric, matchers } of selectors) {
      if (ownMetrics.has(metric)) continue;
      const found = samples.get(metric) ?? [];
      expect({ metric, isThere: found.length > 0 }).toEqual({ metric, isThere: true });
      for (const { label, operator, value } of matchers) {
        if (ownLabels.has(label)) continue;
        expect(found.every((labels) => label in labels)).toBe(true);
        // A status that nobody was answered with cannot be there; an operation must.
        if (label !== "status" && operator === "=") {
          expect(found.map((labels) => labels[label])).toContain(value);
        }
      }
    }
  });

  test("and nothing is grouped by a label that there is not", () => {
    const labels = new Set([...samples.values()].flat().flatMap((each) => Object.keys(each)));
    for (const [, query] of queries) {
      for (const [, names = ""] of query.matchAll(/\bby \(([^)]*)\)/g)) {
        for (const name of names.split(", ")) {
          expect(labels.has(name) || ownLabels.has(name)).toBe(true);
        }
      }
    }
  });
});

test("every alert says what is noticed and where to look", () => {
  for (const { annotations } of alerts) {
    expect(Object.keys(annotations).toSorted()).toEqual(["description", "summary"]);
  }
});

test("a garden or a disk that is full is no failure of the service", () => {
  const expr = alerts.find(({ alert }) => alert === "PlantStoreFailing")?.expr ?? "";
  const [status] = readSelectors(expr).flatMap(({ matchers }) => matchers);
  const isCounted = (code: string) => new RegExp(`^(?:${status?.value})$`).test(code);
  expect(["429", "500", "503", "505", "507"].filter(isCounted)).toEqual(["500", "503"]);
});

test("every metric of the service itself is on the dashboard", () => {
  const own = [...samples.keys()].filter((name) => name.startsWith("plantstore_"));
  const families = new Set(own.map((name) => name.replace(/_(?:bucket|sum|count)$/, "")));
  const shown = JSON.stringify(dashboard.panels);
  expect([...families].filter((name) => !shown.includes(name))).toEqual([]);
});
