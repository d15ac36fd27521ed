/** Alerts and dashboard as Prometheus reads them. Its unit tests take seconds of processor time. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import dashboard from "../../deploy/monitoring/dashboard.json" with { type: "json" };
import { skipsWithout } from "../../testing/skipping.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsWithout("promtool");
const cwd = join(import.meta.dir, "../../deploy/monitoring");

test.skipIf(isSkipped)("promtool's unit tests of the alerts pass", () => {
  const command = ["promtool", "test", "rules", "alerts-test.yaml"];
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd });
  expect([exitCode, stdout.toString()]).toEqual([0, expect.stringContaining("SUCCESS")]);
});

test.skipIf(isSkipped)("every query of the dashboard is PromQL", () => {
  const queries = JSON.stringify(dashboard).match(/(?<="expr":)"(?:[^"\\]|\\.)*"/g) ?? [];
  expect(queries.length).toBeGreaterThan(10);
  // As Grafana replaces its variables. JSON is YAML.
  const rules = queries.map((query, index) => ({
    record: `query_${index}`,
    expr: JSON.parse(query).replaceAll("$__rate_interval", "5m").replace(/\$\w+/g, ".*"),
  }));
  const stdin = Buffer.from(JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
  const { stderr, exitCode } = Bun.spawnSync(["promtool", "check", "rules", "/dev/stdin"], {
    stdin,
  });
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
});
