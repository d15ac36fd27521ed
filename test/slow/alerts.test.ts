/** Alerts and dashboard as Prometheus reads them. Its unit tests take seconds of processor time. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import dashboard from "../../deploy/monitoring/dashboard.json" with { type: "json" };
import { skipsWithout } from "../../testing/skipping.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsWithout("promtool");

test.skipIf(isSkipped)("promtool's unit tests of the alerts pass", () => {
  const { stdout, exitCode } = Bun.spawnSync(["promtool", "test", "rules", "alerts-test.yaml"], {
    cwd: join(import.meta.dir, "../../deploy/monitoring"),
  });

  expect(stdout.toString()).toContain("SUCCESS");
  expect(exitCode).toBe(0);
});

test.skipIf(isSkipped)("every query of the dashboard is valid PromQL", () => {
  const quoted = JSON.stringify(dashboard).match(/(?<="expr":)"(?:[^"\\]|\\.)*"/g) ?? [];
  expect(quoted.length).toBeGreaterThan(10);
  const rules = quoted.map((query, index) => ({
    record: `query_${index}`,
    // As Grafana replaces its variables.
    expr: JSON.parse(query).replaceAll("$__rate_interval", "5m").replace(/\$\w+/g, ".*"),
  }));

  // JSON is YAML.
  const ruleFile = JSON.stringify({ groups: [{ name: "dashboard", rules }] });
  const { stderr, exitCode } = Bun.spawnSync(["promtool", "check", "rules", "/dev/stdin"], {
    stdin: Buffer.from(ruleFile),
  });

  expect(stderr.toString()).toBe("");
  expect(exitCode).toBe(0);
});
