/** The progress of a long command. */
import { expect, test } from "bun:test";
import type { Terminal } from "./command.ts";
import { Progress, renderDuration, renderProgress } from "./progress.ts";

test("shows the share, the count, the rate and the time left", () => {
  const standing = { count: 250_000, share: 0.25 };
  expect(renderProgress(standing, 20_000, true)).toBe(
    `${"█".repeat(6)}${"░".repeat(18)} 25 %, 250,000 plants, 12,500/s, 1:00 left`,
  );
  expect(renderProgress(standing, 20_000, false)).toBe("25 %, 250,000 plants, 12,500/s, 1:00 left");
  expect(renderProgress({ count: 0 }, 0, true)).toBe("0 plants, 0/s");
  expect(renderProgress({ count: 9, share: 1 }, 9_000, false)).toEndWith("0:00 left");
});

test.each([
  [0, "0:00"],
  [59_400, "0:59"],
  [60_000, "1:00"],
  [3_599_000, "59:59"],
  [3_600_000, "1:00:00"],
  [36_061_000, "10:01:01"],
])("%d ms are %s", (durationMs, text) => {
  expect(renderDuration(durationMs)).toBe(text);
});

test("draws within the width of a terminal, and clears before it says something else", async () => {
  const written: string[] = [];
  const terminal: Terminal = {
    isInteractive: true,
    isWatched: true,
    columns: 30,
    out() {},
    say: (text) => written.push(text),
    draw: (text) => written.push(text),
  };
  const progress = new Progress(terminal, () => ({ count: 1, share: 0.5 }));
  await Bun.sleep(250);
  progress.say("line 7: bad");
  progress.end();
  expect(written[0]).toStartWith("\r\x1b[2K█");
  expect(written[0]?.length).toBe("\r\x1b[2K".length + 29);
  expect(written.slice(-3)).toEqual(["\r\x1b[2K", "line 7: bad", "\r\x1b[2K"]);
});

test("sends no codes to a terminal that nothing can be drawn on", () => {
  const written: string[] = [];
  const say = (text: string) => written.push(text);
  const progress = new Progress({ isInteractive: true, isWatched: true, out: say, say }, () => ({
    count: 1,
  }));
  progress.say("line 7: bad");
  progress.end();
  expect(written).toEqual(["line 7: bad"]);
});
