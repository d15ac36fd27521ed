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
  const lines = output.split("\n");
  const summaryAt = lines.findLastIndex((line) => /^ \d+ pass$/.test(line));
  const count = (what: string) =>
    Number(new RegExp(`^ (\\d+) ${what}`, "m").exec(lines.slice(summaryAt).join("\n"))?.[1] ?? 0);
  const failed = Math.max(count("fail"), count("error"), exitCode === 0 ? 0 : 1);
  const hasEnded = summaryAt >= 0;
  const body = (hasEnded ? lines.slice(0, summaryAt) : lines)
    .filter((line) => !line.startsWith("bun test v") && line !== `${file}:`)
    .filter((line) => !line.startsWith(skipMark));
  const ending = hasEnded ? "" : `\nIt ended with ${exitCode}, and without a result.`;
  return {
    file,
    seconds,
    failed,
    passed: hasEnded ? count("pass") : 0,
    skipped: hasEnded ? count("skip") : 0,
    skipReasons: lines
      .filter((line) => line.startsWith(skipMark))
      .map((line) => line.slice(skipMark.length)),
    output: body.join("\n").trim() + ending,
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
  const skips = describeSkips(results);
  return [
    ...(skips.length > 0 ? ["", "Skipped:", ...skips] : []),
    ...failures.flatMap(({ file, output }) => ["", `FAILED: ${file}`, "", output]),
    "",
    `${total("passed")} tests passed, ${total("skipped")} skipped, ${total("failed")} failed, ` +
      `in ${results.length} files and ${Math.round(seconds)} s.`,
    ...failures.map(({ file, failed }) => `FAILED: ${file} (${failed})`),
  ].join("\n");
}

/** One line for each set of reasons. */
function describeSkips(results: readonly FileResult[]): string[] {
  const skipping = results.filter(({ skipped }) => skipped > 0);
  const byReason = Map.groupBy(skipping, reasonOf);
  return [...byReason].map(([reason, files]) => {
    const count = files.reduce((sum, { skipped }) => sum + skipped, 0);
    return `  ${count} (${reason}) in ${files.map(({ file }) => file).join(", ")}`;
  });
}

function reasonOf({ skipReasons }: FileResult): string {
  return skipReasons.join("; ") || "no reason given";
}
