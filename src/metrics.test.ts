/** The text that Prometheus reads: well-formed line by line, and histograms that add up. */
import { beforeEach, describe, expect, test } from "bun:test";
import { Metrics } from "./metrics.ts";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const sampleForm = /^([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)+)\})? (\S+)$/;

/** Reads the format strictly: every sample stands below the HELP and TYPE of its family. */
function parse(text: string): { samples: Sample[]; types: Map<string, string> } {
  expect(text).toEndWith("\n");
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  let family = "";
  for (const line of text.trimEnd().split("\n")) {
    const help = /^# HELP ([a-z_]+) (.+)$/.exec(line);
    const type = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line);
    if (help) {
      family = help[1] ?? "";
      expect(types.has(family)).toBe(false);
    } else if (type) {
      expect(type[1]).toBe(family);
      types.set(family, type[2] ?? "");
    } else {
      const [, name = "", labels = "", value = ""] = sampleForm.exec(line) ?? [];
      const suffix = name.slice(family.length);
      expect([line, name.startsWith(family)]).toEqual([line, true]);
      const suffixes = types.get(family) === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      expect([line, suffixes]).toEqual([line, expect.arrayContaining([suffix])]);
      expect([line, Number.isNaN(Number(value))]).toEqual([line, false]);
      const pairs = [...labels.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, key, text]) => [key, text]);
      samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) });
    }
  }
  return { samples, types };
}

let metrics: Metrics;

beforeEach(() => {
  metrics = new Metrics("1.2.3");
});

function read(name: string, labels: Record<string, string> = {}): number | undefined {
  const { samples } = parse(metrics.render());
  const isWanted = (sample: Sample) =>
    sample.name === name &&
    Object.entries(labels).every(([label, text]) => sample.labels[label] === text);
  return samples.find(isWanted)?.value;
}

test("is well-formed before the first request, with the version and what the process uses", () => {
  const { types } = parse(metrics.render());
  expect(types.get("plantstore_requests_total")).toBe("counter");
  expect(types.get("plantstore_request_duration_seconds")).toBe("histogram");
  expect(types.get("plantstore_commit_group_size")).toBe("histogram");
  expect(read("plantstore_build_info", { version: "1.2.3" })).toBe(1);
  expect(read("plantstore_commits_total")).toBe(0);
  expect(read("process_resident_memory_bytes")).toBeGreaterThan(0);
  expect(read("process_cpu_seconds_total")).toBeGreaterThan(0);
  expect(read("process_start_time_seconds")).toBeGreaterThan(0);
});

test("counts unknown methods under one label, so that no client creates endless labels", () => {
  for (const method of ["BREW", 'X"} 1\nevil', "get"]) metrics.countRequest("none", method, 405, 1);
  expect(read("plantstore_requests_total", { method: "other", status: "405" })).toBe(3);
});

test("adds up what threads count, and shows the state of the worst", () => {
  const other = new Metrics("1.2.3");
  metrics.countFailedCommit("storage-full");
  other.countFailedCommit("storage-full");
  const pool = { connectionsMax: 5, busy: 2, idle: 1, waiting: 3 };
  metrics.readGauges = () => ({ pool, keysAgeSeconds: 10 });
  other.readGauges = () => ({ pool, keysAgeSeconds: 70 });
  const text = metrics.render([other.report()], { isReady: false, certificateSeconds: -5 });
  parse(text);
  for (const sample of [
    "plantstore_ready 0",
    'plantstore_failed_commits_total{code="storage-full"} 2',
    "plantstore_pool_connections_max 10",
    'plantstore_pool_connections{state="busy"} 4',
    'plantstore_pool_connections{state="idle"} 2',
    "plantstore_pool_waiting 6",
    "plantstore_issuer_keys_age_seconds 70",
    "plantstore_certificate_remaining_seconds -5",
  ]) {
    expect(text).toContain(`\n${sample}\n`);
  }
});

describe("a histogram", () => {
  function buckets(name: string): [string, number][] {
    return parse(metrics.render())
      .samples.filter((sample) => sample.name === `${name}_bucket`)
      .map(({ labels, value }) => [labels.le ?? "", value]);
  }

  test("never falls from bucket to bucket, and ends at its count", () => {
    for (let writes = 1; writes < 3000; writes += 7) metrics.countCommit(writes, writes / 3);
    for (const name of ["plantstore_commit_group_size", "plantstore_commit_duration_seconds"]) {
      const found = buckets(name);
      const bounds = found.map(([bound]) => Number(bound.replace("+Inf", "Infinity")));
      const counts = found.map(([, count]) => count);
      expect(bounds).toEqual(bounds.toSorted((left, right) => left - right));
      expect(counts).toEqual(counts.toSorted((left, right) => left - right));
      expect(found.at(-1)).toEqual(["+Inf", read(`${name}_count`) as number]);
    }
  });
});
