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
  kept = new KeptAnswers(async () => version);
});

function make(body: Answer["body"] = "[]"): () => Promise<Answer> {
  return async () => ({ status: 200, body: typeof body === "string" ? `${body}${++made}` : body });
}

describe("an answer", () => {
  test("is made once while nothing changes, for each key", async () => {
    expect((await kept.find("a", make())).body).toBe("[]1");
    expect((await kept.find("a", make())).body).toBe("[]1");
    expect((await kept.find("b", make())).body).toBe("[]2");
  });

  test("is made anew after any change", async () => {
    await kept.find("a", make());
    version = 2n;
    expect((await kept.find("a", make())).body).toBe("[]2");
    version = 1n;
    expect((await kept.find("a", make())).body).toBe("[]3");
  });

  test("is not kept where the storage cannot tell", async () => {
    version = undefined;
    await kept.find("a", make());
    expect((await kept.find("a", make())).body).toBe("[]2");
  });

  test("is not kept when it is streamed, fails, or is very long", async () => {
    async function* stream() {
      yield "[]";
    }
    const first = await kept.find("a", make(stream()));
    expect(await kept.find("a", make(stream()))).not.toBe(first);
    const failing = () => Promise.reject(new Error("no"));
    expect(await kept.find("b", failing).catch((error) => error.message)).toBe("no");
    expect((await kept.find("b", make())).body).toBe("[]1");
    await kept.find("c", make("x".repeat(64 * 1024)));
    expect((await kept.find("c", make())).body).toBe("[]3");
  });

  test("is not kept when a change came while it was made", async () => {
    const slow = kept.find("a", async () => {
      version = 2n;
      await kept.find("b", make());
      return { status: 200, body: "old" };
    });
    expect((await slow).body).toBe("old");
    expect((await kept.find("a", make())).body).toBe("[]2");
  });

  test("makes room when there are too many", async () => {
    const long = "x".repeat(60 * 1024);
    for (let key = 0; key < 200; key++) await kept.find(`key ${key}`, make(long));
    expect((await kept.find("key 0", make(long))).body).toEndWith("201");
    expect((await kept.find("key 199", make(long))).body).toEndWith("200");
  });
});
