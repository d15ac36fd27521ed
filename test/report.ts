/** What test/run.ts prints: a line for each file as it ends, then all skips and failures. */
import { skipMark } from "./skipping.ts";

export interface FileResult {
  readonly file: string;
  readonly seconds: number;
  readonly passed: number;
  readonly skipped: number;
  /** Tests, and errors outside of tests. */
  readonly failed: number;
  readonly skipReasons: readonly string[];
  /** The messages of its failures. */
  readonly output: string;
}

/** Reads the output of `bun test --only-failures` of one file. */
export function readResult(
  file: string,
  output: string,
  { exitCode, seconds }: { exitCode: number; seconds: number },
): FileResult {
  const lines = output.trim().split("\n");
  // The totals stand at the end.
  const count = (what: string) =>
    Number.parseInt(output.match(new RegExp(`^ \\d+ ${what}`, "gm"))?.at(-1) ?? "0", 10);
  const hasEnded = /^ \d+ pass$/m.test(output);
  if (!hasEnded) lines.push(`It ended with ${exitCode}, and without a result.`);
  const reasons = lines.filter((line) => line.startsWith(skipMark));
  return {
    file,
    seconds,
    passed: count("pass"),
    skipped: count("skip"),
    failed: Math.max(count("fail"), count("error"), exitCode === 0 ? 0 : 1),
    skipReasons: reasons.map((line) => line.slice(skipMark.length)),
    output: lines.filter((line) => !reasons.includes(line)).join("\n"),
  };
}

export function describeResult(result: FileResult, position: string): string {
  const { file, seconds, failed, passed, skipped } = result;
  const counts = [`${passed} passed`];
  if (skipped > 0) counts.push(`${skipped} skipped`);
  if (failed > 0) counts.push(`${failed} failed`);
  const mark = failed > 0 ? "FAIL" : "ok  ";
  const names = result.output.match(/^\(fail\) .*$/gm) ?? [];
  return [
    `${position} ${mark} ${seconds.toFixed(1).padStart(5)} s  ${file}  ${counts.join(", ")}`,
    ...names.map((name) => `    ${name}`),
  ].join("\n");
}

/** Ends with what matters most: failures, and then the totals. */
export function summarize(results: readonly FileResult[], seconds: number): string {
  const total = (what: "passed" | "skipped" | "failed") =>
    results.reduce((sum, result) => sum + result[what], 0).toLocaleString("en");
  const failures = results.filter(({ failed }) => failed > 0);
  const skips = results.filter(({ skipped }) => skipped > 0);
  return [
    ...skips.map(
      ({ file, skipped, skipReasons }) => `${file}: ${skipped} skipped (${skipReasons.join("; ")})`,
    ),
    ...failures.flatMap(({ file, output }) => ["", `FAILED: ${file}`, "", output]),
    "",
    `${total("passed")} tests passed, ${total("skipped")} skipped, ${total("failed")} failed, ` +
      `in ${results.length} files and ${Math.round(seconds)} s.`,
    ...failures.map(({ file, failed }) => `FAILED: ${file} (${failed})`),
  ].join("\n");
}
