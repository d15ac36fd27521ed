/** One process serves a file: in this process, in another one, and after that one was killed. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "./engine.ts";
import { lockForServing } from "./lock.ts";

let folder: string;
let path: string;
let locks: Database[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-lock-"));
  path = join(folder, "plants.db");
  locks = [];
});

afterEach(() => {
  for (const lock of locks) lock.close();
  rmSync(folder, { recursive: true });
});

function lock(file = path): void {
  locks.push(lockForServing(file));
}

test("is taken by one at a time", () => {
  lock();
  expect(() => lock()).toThrow(
    expect.objectContaining({
      code: "unavailable",
      message: expect.stringContaining("another process is serving it already"),
    }),
  );
});

test("can be taken again once it was let go", () => {
  lock();
  locks.pop()?.close();
  expect(() => lock()).not.toThrow();
});

test("of one file does not lock another one", () => {
  lock();
  expect(() => lock(join(folder, "other.db"))).not.toThrow();
});

test("does not hold up a tool that opens the file beside the service", async () => {
  const serving = openSqlite(path, { isServing: true });
  const tool = openSqlite(path, { isServing: false });
  await tool.ping();
  await tool.close();
  await serving.close();
});

test("is let go when the storage is closed", async () => {
  await openSqlite(path, { isServing: true }).close();
  await openSqlite(path, { isServing: true }).close();
});

test("holds for the file, also when a link leads to it", async () => {
  const serving = openSqlite(path, { isServing: true });
  const link = join(folder, "link.db");
  symlinkSync(path, link);
  let second: { close(): Promise<void> } | undefined;
  try {
    second = openSqlite(link, { isServing: true });
  } catch {}
  await second?.close();
  await serving.close();
  expect(second).toBeUndefined();
});

// Whoever owns the folder could have root open, and give them, any file of the system.
test("is not taken through a link", () => {
  const elsewhere = join(folder, "elsewhere");
  symlinkSync(elsewhere, `${path}-serving`);
  expect(() => openSqlite(path, { isServing: true })).toThrow("are not followed");
  expect(existsSync(elsewhere)).toBe(false);
});

test("of another process is seen, and is gone when that process is killed", async () => {
  const script = `
    const { lockForServing } = await import(${JSON.stringify(join(import.meta.dir, "lock.ts"))});
    const lock = lockForServing(${JSON.stringify(path)});
    process.stdout.write("locked");
    setInterval(() => lock, 1000);
  `;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const reader = other.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("locked");
  expect(() => lock()).toThrow("another process is serving it already");
  other.kill("SIGKILL");
  await other.exited;
  expect(() => lock()).not.toThrow();
});
