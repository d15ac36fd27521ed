/** The progress of a long command. */
import { expect, test } from "bun:test";
import { renderProgress, withProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

test("shows the share, the count, the rate and the time left", () => {
  const state = { count: 250_000, share: 0.25 };
  expect(renderProgress(state, 20_000)).toBe("25 %, 250,000 plants, 12,500/s, 1 min 0 s left");
  expect(renderProgress({ count: 0 }, 0)).toBe("0 plants, 0/s");
  expect(renderProgress({ count: 9, share: 1 }, 9_000)).toEndWith("0.0 s left");
});

function watch(columns: number) {
  const drawn: string[] = [];
  const draw = (text: string) => drawn.push(text);
  const terminal: Terminal = {
    isStdoutTty: true,
    isStderrTty: true,
    columns,
    out() {},
    say() {},
    draw,
  };
  return { drawn, terminal };
}

test("draws within the width of a terminal, and clears the line at the end", async () => {
  const { drawn, terminal } = watch(30);
  const state = { count: 1, share: 0.5 };
  await withProgress(
    terminal,
    () => state,
    () => Bun.sleep(250),
  );
  expect(drawn[0]).toStartWith(`\r\x1b[2K${"█".repeat(12)}${"░".repeat(12)} 50`);
  expect(drawn[0]?.length).toBe("\r\x1b[2K".length + 29);
  expect(drawn.at(-1)).toBe("\r\x1b[2K");
});

test("says that it waits for the service when nothing moves", async () => {
  const { drawn, terminal } = watch(100);
  const state = { count: 7 };
  await withProgress(
    terminal,
    () => state,
    () => Bun.sleep(2_500),
  );
  expect(drawn[0]).not.toContain("waiting");
  expect(drawn.at(-2)).toEndWith("waiting for the service");
});
