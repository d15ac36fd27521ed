/**
 * Every query of the dashboard and of the alerts, against the metrics of a real service under load.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { serviceOperations } from "../src/http/operations/index.ts";
import { audience, startIssuer } from "../testing/openid-issuer.ts";
import { makeDatabase } from "../testing/postgres-server.ts";
import { serveHere } from "../testing/running-service.ts";

const read = (name: string) => readFileSync(join(import.meta.dir, "monitoring", name), "utf8");
const rules = Bun.YAML.parse(read("alerts.yaml")) as {
  groups: { rules: { alert: string; expr: string; annotations: { runbook: string } }[] }[];
};
const alerts = rules.groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read("dashboard.json"));
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
const ownLabels = new Set(["job", "instance", "le"]);

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

const certificate = (name: string) => join(import.meta.dir, "../test/certificates", name);
const issuer = startIssuer();
/** The samples of two services, by metric: their labels. */
const samples = new Map<string, Record<string, string>[]>();

beforeAll(async () => {
  await using service = await serveHere({ "rate-limit": "60/d", "garden-plants-max": "5" });
  for (let count = 0; count < 8; count++) {
    await service.call("POST /plants", { body: '{"name":"Fern"}' });
  }
  await service.call("DELETE /plants/1");
  for (let count = 0; count < 60; count++) await service.call("GET /plants?limit=2");
  await readSamples(service);
  // With what the other one lacks: a pool, a certificate, an issuer.
  await issuer.makeKey();
  await using database = await makeDatabase();
  await using secure = await serveHere({
    database: database.url,
    "tls-cert": certificate("server.pem"),
    "tls-key": certificate("server-key.pem"),
    "jwt-issuer": issuer.url,
    "jwt-audience": audience,
  });
  await readSamples(secure);
});

async function readSamples({ url }: { readonly url: string }): Promise<void> {
  const response = await fetch(`${url}/metrics`, { tls: { rejectUnauthorized: false } });
  const text = await response.text();
  for (const [, metric = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]);
    const known = samples.get(metric) ?? [];
    samples.set(metric, [...known, Object.fromEntries(pairs)]);
  }
}

afterAll(() => issuer.stop());

test.each(queries)("every metric and label of %s is there under load", (query) => {
  const selectors = readSelectors(query);
  expect(selectors.length).toBeGreaterThan(0);
  const labels = new Set([...samples.values()].flat().flatMap((each) => Object.keys(each)));
  const groupings = [...query.matchAll(/\bby \(([^)]*)\)/g)];
  const grouped = groupings.flatMap(([, names = ""]) => names.split(", "));
  expect(grouped.filter((name) => !labels.has(name) && !ownLabels.has(name))).toEqual([]);
  for (const { metric, matchers } of selectors) {
    if (otherMetrics.has(metric)) continue;
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

test("a garden or a disk that is full is no failure of the service", () => {
  const expr = alerts.find(({ alert }) => alert === "PlantStoreFailing")?.expr ?? "";
  const [status] = readSelectors(expr).flatMap(({ matchers }) => matchers);
  const isCounted = (code: string) => new RegExp(`^(?:${status?.value})$`).test(code);
  expect(["429", "500", "503", "505", "507"].filter(isCounted)).toEqual(["500", "503"]);
});

test("every alert has a unit test in which it fires, and a section in its runbook", () => {
  const { tests } = Bun.YAML.parse(read("alerts-test.yaml")) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
  };
  const cases = tests.flatMap((each) => each.alert_rule_test);
  const firing = new Set(cases.filter((each) => each.exp_alerts).map((each) => each.alertname));
  const names = alerts.map(({ alert }) => alert);
  expect([...firing].toSorted()).toEqual(names.toSorted());
  const runbook = readFileSync(join(import.meta.dir, "../docs/alerts.md"), "utf8");
  const sections = Array.from(runbook.matchAll(/^## (.*)$/gm), ([, title = ""]) => title);
  expect(sections).toEqual(names);
  const links = names.map((name) => `docs/alerts.md#${name.toLowerCase()}`);
  expect(alerts.map(({ annotations }) => annotations.runbook)).toEqual(links);
});

test("probes are what the alerts leave out", () => {
  const probes = serviceOperations.filter(({ isProbe }) => isProbe).map(({ name }) => name);
  const matched = queries.flatMap((query) => query.match(/operation!~"[^"]*"/g) ?? []);
  expect(new Set(matched)).toEqual(new Set([`operation!~"${probes.join("|")}"`]));
});
