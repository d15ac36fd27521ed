/** The text that Prometheus reads: its form, its labels, and histograms that add up. */
import { beforeEach, expect, test } from "bun:test";
import { Metrics } from "./metrics.ts";

let metrics: Metrics;

beforeEach(() => {
  metrics = new Metrics("1.2.3");
});

function expectSamples(text: string, samples: readonly string[]): void {
  for (const sample of samples) expect(text).toContain(`\n${sample}\n`);
}

test("every sample stands below the help and type of its family, which come once", () => {
  metrics.countRequest("listPlants", "GET", 200, 1);
  metrics.countCommit(3, 250);
  const families = metrics.render(true).split(/^(?=# HELP )/m);
  const names = families.map((family) => {
    const [, name = "", type] =
      /^# HELP (\w+) .+\n# TYPE \1 (counter|gauge|histogram)\n/.exec(family) ?? [];
    const suffix = type === "histogram" ? "(?:_bucket|_sum|_count)" : "";
    const sample = `${name}${suffix}(?:\\{(?:[a-z]+="[^"\\\\\\n]*",?)+\\})? \\S+\\n`;
    expect(family).toMatch(new RegExp(`^#.+\n#.+\n(?:${sample})*$`));
    return name;
  });
  expect(new Set(names).size).toBe(families.length);
  expect(names).toContain("plantstore_requests_total");
});

test("counts unknown methods under one label, so that no client creates endless labels", () => {
  for (const method of ["BREW", 'X"} 1\nevil', "get"]) metrics.countRequest("none", method, 405, 1);
  expect(metrics.render(true)).toMatch(
    /^plantstore_requests_total\{operation="none",method="other",status="405"\} 3$/m,
  );
});

test("adds up what threads count, and shows the state of the worst", () => {
  const other = new Metrics("1.2.3");
  metrics.countFailedCommit("storage-full");
  other.countFailedCommit("storage-full");
  const pool = { connectionsMax: 5, busy: 2, idle: 1, waiting: 3 };
  metrics.readGauges = () => ({ pool, keysAgeSeconds: 10, certificateSeconds: -5 });
  other.readGauges = () => ({ pool, keysAgeSeconds: 70 });
  metrics.others.set("other", other.report());
  expectSamples(metrics.render(false), [
    "plantstore_ready 0",
    'plantstore_failed_commits_total{code="storage-full"} 2',
    "plantstore_pool_connections_max 10",
    'plantstore_pool_connections{state="busy"} 4',
    'plantstore_pool_connections{state="idle"} 2',
    "plantstore_pool_waiting 6",
    "plantstore_issuer_keys_age_seconds 70",
    "plantstore_certificate_remaining_seconds -5",
  ]);
});

test("a histogram counts a value in the bucket that it bounds and in all above", () => {
  for (const writes of [1, 2, 3, 1024, 1025]) metrics.countCommit(writes, 250);
  expectSamples(metrics.render(true), [
    'plantstore_commit_group_size_bucket{le="1"} 1',
    'plantstore_commit_group_size_bucket{le="2"} 2',
    'plantstore_commit_group_size_bucket{le="512"} 3',
    'plantstore_commit_group_size_bucket{le="1024"} 4',
    'plantstore_commit_group_size_bucket{le="+Inf"} 5',
    "plantstore_commit_group_size_sum 2055",
    "plantstore_commit_group_size_count 5",
    "plantstore_commit_duration_seconds_sum 1.25",
  ]);
});
