/** The text that Prometheus reads: its form, its labels, and histograms that add up. */
import { expect, test } from "bun:test";
import { Metrics } from "./metrics.ts";

function expectSamples(text: string, samples: readonly string[]): void {
  for (const sample of samples) expect(text).toContain(`\n${sample}\n`);
}

test("every sample is below the help and type of its family, which come once", () => {
  const metrics = new Metrics("1.2.3");
  metrics.countRequest("listPlants", "GET", 200, 1);
  metrics.countCommit(3, 250);

  const families = metrics.render(true).split(/^(?=# HELP )/m);

  const names = families.map((family) => {
    const [, name = "", type] =
      /^# HELP (\w+) .+\n# TYPE \1 (counter|gauge|histogram)\n/.exec(family) ?? [];
    const suffix = type === "histogram" ? "(?:_bucket|_sum|_count)" : "";
    const labels = String.raw`(?:\{(?:[a-z]+="[^"\\\n]*",?)+\})?`;
    const sample = String.raw`${name}${suffix}${labels} \S+\n`;
    expect(family).toMatch(new RegExp(`^#.+\n#.+\n(?:${sample})*$`));
    return name;
  });
  expect(new Set(names).size).toBe(families.length);
  expect(names).toContain("plantstore_requests_total");
});

test("whether the service is ready is 1 or 0", () => {
  const metrics = new Metrics("1.2.3");

  expectSamples(metrics.render(true), ["plantstore_ready 1"]);
  expectSamples(metrics.render(false), ["plantstore_ready 0"]);
});

test("unknown methods are counted as one, so that clients can't create endless labels", () => {
  const metrics = new Metrics("1.2.3");

  metrics.countRequest("none", "BREW", 405, 1);
  metrics.countRequest("none", 'X"} 1\nevil', 405, 1);
  metrics.countRequest("none", "get", 405, 1);

  expectSamples(metrics.render(true), [
    'plantstore_requests_total{operation="none",method="other",status="405"} 3',
  ]);
});

test("what threads count is added up", () => {
  const metrics = new Metrics("1.2.3");
  const otherThread = new Metrics("1.2.3");
  const pool = { connectionsMax: 5, busy: 2, idle: 1, waiting: 3 };
  metrics.countFailedCommit("storage-full");
  metrics.readGauges = () => ({ pool });
  otherThread.countFailedCommit("storage-full");
  otherThread.readGauges = () => ({ pool });

  metrics.others.set("other", otherThread.report());

  expectSamples(metrics.render(true), [
    'plantstore_failed_commits_total{code="storage-full"} 2',
    "plantstore_pool_connections_max 10",
    'plantstore_pool_connections{state="busy"} 4',
    'plantstore_pool_connections{state="idle"} 2',
    "plantstore_pool_waiting 6",
  ]);
});

test("of ages and remaining times, the worst of all threads is shown", () => {
  const metrics = new Metrics("1.2.3");
  const otherThread = new Metrics("1.2.3");
  metrics.readGauges = () => ({ keysAgeSeconds: 10, certificateSeconds: -5 });
  otherThread.readGauges = () => ({ keysAgeSeconds: 70 });

  metrics.others.set("other", otherThread.report());

  expectSamples(metrics.render(true), [
    "plantstore_issuer_keys_age_seconds 70",
    "plantstore_certificate_remaining_seconds -5",
  ]);
});

test("a histogram counts a value in the bucket that it bounds and in all above", () => {
  const metrics = new Metrics("1.2.3");

  for (const writes of [1, 2, 3, 1_024, 1_025]) metrics.countCommit(writes, 250);

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
