/** What a check found: for a person while it runs, for a machine at its end. */
import type { CheckResult, RowResult } from "../check/run-check.ts";
import { renderDuration } from "./progress.ts";
import type { Terminal } from "./terminal.ts";
import { showSafely } from "./terminal.ts";

const signs = { passed: "✓", failed: "✗", skipped: "–" } as const;

export class CheckReport {
  readonly #terminal: Terminal;
  readonly #url: string;
  readonly #isJson: boolean;
  readonly #total: number;
  readonly #startedAtMs = performance.now();
  #count = 0;
  #topic = "";

  constructor(terminal: Terminal, options: { url: string; isJson: boolean; total: number }) {
    this.#terminal = terminal;
    this.#url = options.url;
    this.#isJson = options.isJson;
    this.#total = options.total;
  }

  add(result: RowResult): void {
    this.#clear();
    if (this.#count++ === 0) {
      this.#write(`${this.#url}, checked against ${this.#total} rules of the interface\n`);
    }
    if (result.topic !== this.#topic) this.#write(`\n${result.topic}\n`);
    this.#topic = result.topic;
    this.#write(renderResult(result));
    this.#terminal.draw?.(`  ${this.#count} of ${this.#total}`);
  }

  end(result: CheckResult): void {
    this.#clear();
    const { passed, failed, skipped } = countOutcomes(result);
    const took = renderDuration(performance.now() - this.#startedAtMs);
    this.#write(`\n${passed} passed, ${failed} failed, ${skipped} skipped, in ${took}.\n`);
    if (result.waitedSeconds > 0) {
      const waited = renderDuration(result.waitedSeconds * 1_000);
      this.#write(`The service limits the rate, and had requests wait, ${waited} in all.\n`);
    }
    if (result.isInterrupted) this.#terminal.say("plantstore: Interrupted before the last rule.");
    if (result.leftBehind.length === 0) this.#write("What was created is deleted again.\n");
    else this.#terminal.say(`plantstore: Not deleted: ${result.leftBehind.join(", ")}.`);
  }

  /** Says something beside the report. */
  say(text: string): void {
    this.#clear();
    this.#terminal.say(text);
  }

  #write(text: string): void {
    if (!this.#isJson) this.#terminal.out(text);
  }

  #clear(): void {
    this.#terminal.draw?.("\r\x1b[2K");
  }
}

function renderResult({ rule, outcome, reason, request, answer }: RowResult): string {
  const lines = [`  ${signs[outcome]} ${rule}${outcome === "skipped" ? ` (${reason})` : ""}`];
  if (outcome === "failed") {
    lines.push(`      ${showLine(reason ?? "")}`);
    lines.push(...quote(">", request), ...quote("<", answer));
  }
  return `${lines.join("\n")}\n`;
}

function quote(sign: string, text: string | undefined): string[] {
  const lines = text?.trimEnd().split("\n") ?? [];
  return lines.map((line) => `      ${sign} ${showLine(line)}`.trimEnd());
}

/** What a service sends may hold anything. */
function showLine(line: string): string {
  return showSafely(line.replace(/\r$/, ""));
}

function countOutcomes({ results }: CheckResult) {
  const count = (wanted: string) => results.filter(({ outcome }) => outcome === wanted).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}

export function renderJsonReport(url: string, result: CheckResult): string {
  const { results: rules, ...others } = result;
  const report = { url, ...countOutcomes(result), ...others, rules };
  return `${JSON.stringify(report, null, 2)}\n`;
}
