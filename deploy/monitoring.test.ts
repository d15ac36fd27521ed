/**
 * Every query of the dashboard and of the alerts, against the metrics of a real service under load.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { serviceOperations } from "../src/http/operations/index.ts";
import { audience, startIssuer } from "../testing/openid-issuer.ts";
import { makeDatabase } from "../testing/postgres-server.ts";
import { serveHere } from "../testing/running-service.ts";

function read(path: string): string {
  return readFileSync(join(import.meta.dir, path), "utf8");
}

const rules = Bun.YAML.parse(read("monitoring/alerts.yaml")) as {
  groups: { rules: { alert: string; expr: string; annotations: { runbook: string } }[] }[];
};
const alerts = rules.groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read("monitoring/dashboard.json"));
const queries = [...alerts.map(({ expr }) => expr), ...findQueries(dashboard)];

/** Every `expr`, wherever it is. */
function findQueries(part: unknown): string[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([name, value]) =>
    name === "expr" ? [String(value)] : findQueries(value),
  );
}

/** From elsewhere: Prometheus itself, the backup's metric file, kube-state-metrics. */
const otherMetrics = new Set([
  "up",
  "plantstore_backup_timestamp_seconds",
  "kube_cronjob_status_last_successful_time",
  "kube_cronjob_created",
]);
/** What Prometheus adds to every target. */
const otherLabels = new Set(["job", "instance", "le"]);

/** A part of a query, such as `plantstore_requests_total{status="503"}`. */
interface Selector {
  readonly metric: string;
  readonly matchers: { label: string; operator: string; value: string }[];
}

function readSelectors(query: string): Selector[] {
  const found = query.matchAll(/\b(up|(?:plantstore|process|kube)_\w+)(?:\{([^}]*)\})?/g);
  return Array.from(found, ([, metric = "", inner = ""]) => ({
    metric,
    matchers: Array.from(
      inner.matchAll(/(\w+)\s*([=!~]+)\s*"([^"]*)"/g),
      ([, label = "", operator = "", value = ""]) => ({ label, operator, value }),
    ),
  }));
}

/** The labels of each sample, by the sample's metric. */
type Samples = Map<string, Record<string, string>[]>;

async function readSamples(url: string): Promise<Samples> {
  const response = await fetch(`${url}/metrics`, { tls: { rejectUnauthorized: false } });
  const text = await response.text();
  const samples: Samples = new Map();
  for (const [, metric = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    samples.set(metric, [...(samples.get(metric) ?? []), Object.fromEntries(pairs)]);
  }
  return samples;
}

/** Of a service on SQLite that creates, deletes, lists, and refuses when its garden is full. */
async function sampleUnderLoad(): Promise<Samples> {
  await using service = await serveHere({ "rate-limit": "60/d", "garden-plants-max": "5" });
  for (let count = 0; count < 8; count++) {
    await service.call("POST /plants", { body: '{"name":"Fern"}' });
  }
  await service.call("DELETE /plants/1");
  for (let count = 0; count < 60; count++) await service.call("GET /plants?limit=2");
  return readSamples(service.url);
}

/** Of a service with what the other one lacks: a pool, a certificate, an issuer. */
async function sampleWithEverything(): Promise<Samples> {
  const certificates = join(import.meta.dir, "../test/certificates");
  const issuer = startIssuer();
  await issuer.makeKey();
  await using database = await makeDatabase();
  await using service = await serveHere({
    database: database.url,
    "tls-cert": join(certificates, "server.pem"),
    "tls-key": join(certificates, "server-key.pem"),
    "jwt-issuer": issuer.url,
    "jwt-audience": audience,
  });
  const samples = await readSamples(service.url);
  await issuer.stop();
  return samples;
}

/** Of both services. */
const samples: Samples = new Map();

beforeAll(async () => {
  for (const part of [await sampleUnderLoad(), await sampleWithEverything()]) {
    for (const [metric, labels] of part) {
      samples.set(metric, [...(samples.get(metric) ?? []), ...labels]);
    }
  }
});

describe.each(queries)("the query %s", (query) => {
  /** What it selects of the service's own metrics. */
  const selectors = readSelectors(query).filter(({ metric }) => !otherMetrics.has(metric));

  test("selects metrics that the service has, or others that we know", () => {
    expect(readSelectors(query).length).toBeGreaterThan(0);

    for (const { metric } of selectors) expect([...samples.keys()]).toContain(metric);
  });

  test("matches labels that every sample of the metric has", () => {
    for (const { metric, matchers } of selectors) {
      for (const { label } of matchers.filter(({ label }) => !otherLabels.has(label))) {
        for (const labels of samples.get(metric) ?? []) {
          expect(Object.keys(labels)).toContain(label);
        }
      }
    }
  });

  test("matches values that the labels have", () => {
    for (const { metric, matchers } of selectors) {
      for (const { label, operator, value } of matchers) {
        // A service that never fails has no samples with the status of a failure.
        if (operator !== "=" || label === "status" || otherLabels.has(label)) continue;
        expect(samples.get(metric)?.map((labels) => labels[label])).toContain(value);
      }
    }
  });

  test("groups by labels that the service has", () => {
    const groupings = [...query.matchAll(/\bby \(([^)]*)\)/g)];
    const grouped = groupings.flatMap(([, names = ""]) => names.split(", "));

    const known = [...samples.values()].flat().flatMap((labels) => Object.keys(labels));
    const unknown = grouped.filter((name) => !known.includes(name) && !otherLabels.has(name));
    expect(unknown).toEqual([]);
  });
});

describe("the alerts", () => {
  const names = alerts.map(({ alert }) => alert);

  /** Whether PlantStoreFailing counts responses with this status. */
  function isFailure(status: string): boolean {
    const failing = alerts.find(({ alert }) => alert === "PlantStoreFailing");
    const [matcher] = readSelectors(failing?.expr ?? "").flatMap(({ matchers }) => matchers);
    expect(matcher?.label).toBe("status");
    expect(matcher?.operator).toBe("=~");
    return new RegExp(`^(?:${matcher?.value})$`).test(status);
  }

  test.each(["500", "503"])("count %s as a failure of the service", (status) => {
    expect(isFailure(status)).toBe(true);
  });

  // A user sends too much, or an unknown HTTP version; a garden or a disk is full.
  test.each(["429", "505", "507"])("don't count %s as a failure of the service", (status) => {
    expect(isFailure(status)).toBe(false);
  });

  test("have unit tests in which each of them fires", () => {
    const { tests } = Bun.YAML.parse(read("monitoring/alerts-test.yaml")) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
    };

    const cases = tests.flatMap((each) => each.alert_rule_test);
    const firing = new Set(cases.filter((each) => each.exp_alerts).map((each) => each.alertname));
    expect([...firing].toSorted()).toEqual(names.toSorted());
  });

  test("have a section each in the runbook, in the same order", () => {
    const runbook = read("../docs/alerts.md");

    const sections = Array.from(runbook.matchAll(/^## (.*)$/gm), ([, title]) => title);
    expect(sections).toEqual(names);
  });

  test.each(alerts)("link $alert to its section of the runbook", ({ alert, annotations }) => {
    expect(annotations.runbook).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
  });
});

test("wherever a query leaves out operations, they are the probes", () => {
  const probes = serviceOperations.filter(({ isProbe }) => isProbe).map(({ name }) => name);

  const matchers = queries.flatMap((query) => query.match(/operation!~"[^"]*"/g) ?? []);
  expect(matchers.length).toBeGreaterThan(0);
  for (const matcher of matchers) expect(matcher).toBe(`operation!~"${probes.join("|")}"`);
});
