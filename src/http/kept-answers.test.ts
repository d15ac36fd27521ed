/** Kept answers: served while the version stands, and not a moment longer. */
import { beforeEach, describe, expect, test } from "bun:test";
import { KeptAnswers } from "./kept-answers.ts";
import type { Answer } from "./operation.ts";

let version: bigint | undefined;
let made = 0;
let kept: KeptAnswers;

beforeEach(() => {
  version = 1n;
  made = 0;
  kept = new KeptAnswers(() => version);
});

function make(body: Answer["body"] = "[]"): () => Promise<Answer> {
  return async () => ({ status: 200, body: typeof body === "string" ? `${body}${++made}` : body });
}

async function ask(key: string, how: () => Promise<Answer>): Promise<Answer> {
  return kept.find(key) ?? kept.keep(key, how());
}

/** By another thread or process, so that it comes in another turn of the event loop. */
async function change(to: bigint | undefined): Promise<void> {
  version = to;
  await new Promise((resolve) => setImmediate(resolve));
}

describe("an answer", () => {
  test("is wanted when it is asked for again before anything changes", async () => {
    expect([kept.isWanted("a"), kept.isWanted("b"), kept.isWanted("a")]).toEqual([
      false,
      false,
      true,
    ]);
    await change(2n);
    expect([kept.isWanted("a"), kept.isWanted("a")]).toEqual([false, true]);
  });

  test("is never wanted when its key is very long, and forgotten among very many", () => {
    const longest = "k".repeat(256);
    expect([kept.isWanted(longest), kept.isWanted(longest)]).toEqual([false, true]);
    expect([kept.isWanted(`${longest}k`), kept.isWanted(`${longest}k`)]).toEqual([false, false]);
    for (let key = 1; key < 4_096; key++) kept.isWanted(`key ${key}`);
    expect(kept.isWanted(longest)).toBe(true);
    kept.isWanted("one more");
    expect(kept.isWanted(longest)).toBe(false);
  });

  test("is made once while nothing changes, for each key", async () => {
    expect((await ask("a", make())).body).toBe("[]1");
    expect((await ask("a", make())).body).toBe("[]1");
    expect((await ask("b", make())).body).toBe("[]2");
  });

  test("is made anew after any change", async () => {
    await ask("a", make());
    await change(2n);
    expect((await ask("a", make())).body).toBe("[]2");
    await change(1n);
    expect((await ask("a", make())).body).toBe("[]3");
  });

  test("is not kept where the storage cannot tell", async () => {
    await change(undefined);
    await ask("a", make());
    expect((await ask("a", make())).body).toBe("[]2");
  });

  test("is not kept when it is streamed, fails, or is very long", async () => {
    const stream = () => ({ next: async () => undefined, close() {} });
    const first = await ask("a", make(stream()));
    expect(await ask("a", make(stream()))).not.toBe(first);
    const failing = () => Promise.reject(new Error("no"));
    expect(await ask("b", failing).catch((error) => error.message)).toBe("no");
    expect((await ask("b", make())).body).toBe("[]1");
    await ask("c", make("x".repeat(64 * 1024)));
    expect((await ask("c", make())).body).toBe("[]3");
  });

  test("is not kept when a change came while it was made", async () => {
    const slow = ask("a", async () => {
      await change(2n);
      await ask("b", make());
      return { status: 200, body: "old" };
    });
    expect((await slow).body).toBe("old");
    expect((await ask("a", make())).body).toBe("[]2");
  });

  test("makes room when there are too many", async () => {
    const long = "x".repeat(60 * 1024);
    for (let key = 0; key < 200; key++) await ask(`key ${key}`, make(long));
    expect((await ask("key 0", make(long))).body).toEndWith("201");
    expect((await ask("key 199", make(long))).body).toEndWith("200");
  });

  test("is kept up to 65,536 characters", async () => {
    const longest = "x".repeat(64 * 1024 - 1);
    expect((await ask("a", make(longest))).body).toHaveLength(64 * 1024);
    expect((await ask("a", make())).body).toBe(`${longest}1`);
  });

  test("takes its room once, however many have it made at the same time", async () => {
    await ask("a", make());
    const long = "x".repeat(60 * 1024);
    await Promise.all(Array.from({ length: 200 }, () => ask("b", make(long))));
    expect((await ask("a", make())).body).toBe("[]1");
  });

  test("takes room beside its text, so that very many short ones are too many, too", async () => {
    for (let key = 0; key < 9_000; key++) await ask(`key ${key}`, make());
    expect((await ask("key 0", make())).body).toBe("[]9001");
    expect((await ask("key 8999", make())).body).toBe("[]9000");
  });
});
