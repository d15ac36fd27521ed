/** Group commit above a storage that the test drives: groups, failures, deadline, held gardens. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { create, remove } from "../../testing/tested-storage.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { sliceCharactersMax, slicePlantsMax } from "../domain/plants.ts";
import type { Outcome, Write } from "../domain/ports.ts";
import { lateAfterMs } from "../limits/overload.ts";
import { deadlineMs, GroupCommit } from "./group-commit.ts";
import { attemptMsMin, heldCharactersMax, heldMsMax, heldRequestsMax } from "./held-gardens.ts";
import { groupWritesMax } from "./write-group.ts";

/** A commit under way. It ends when the test says so. */
interface Commit {
  /** The requests of its writes: the garden and the plant, such as "ann 1". */
  readonly requests: readonly string[];
  /** How long it may wait for its garden. Absent if it passes over held gardens. */
  readonly waitMs: number | undefined;
  succeed(): void;
  /** The writes of these gardens aren't committed: another process holds them. */
  succeedExceptFor(...gardens: string[]): void;
  fail(error: Error): void;
}

/** The clock, which only a test moves. */
let nowMs: number;
/** All commits so far. */
let commits: Commit[];
/** How many writes each commit had that the observer was told of. */
let observedCommits: number[];
/** Whether a commit is stuck, whenever the observer was told. */
let observedStuck: boolean[];
let group: GroupCommit;

beforeEach(() => {
  nowMs = 0;
  commits = [];
  observedCommits = [];
  observedStuck = [];
  const storage = {
    apply: () => Promise.reject(new Error("It must use `contended`.")),
    contended: { waitsMax: 2, applyUnlessHeld: startCommit, applyBefore: startCommit },
  };
  const observer = {
    onCommit: (outcomes: readonly Outcome[]) => observedCommits.push(outcomes.length),
    onStuck: (isStuck: boolean) => observedStuck.push(isStuck),
  };
  group = new GroupCommit(storage, observer, () => nowMs);
});
afterEach(async () => {
  // Ends what the test has left under way, with its timers.
  await succeedFrom(0);
  jest.useRealTimers();
});

function startCommit(
  writes: readonly Write[],
  untilMs?: number,
): Promise<readonly (Outcome | undefined)[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly (Outcome | undefined)[]>();
  const succeedExceptFor = (...gardens: string[]) => {
    const outcomes = writes.map(({ garden, id }): Outcome | undefined =>
      gardens.includes(garden) ? undefined : { kind: "created", id: id as bigint, replayed: false },
    );
    resolve(outcomes);
  };
  commits.push({
    requests: [...new Set(writes.map(({ garden, id }) => `${garden} ${id}`))],
    waitMs: untilMs === undefined ? undefined : untilMs - nowMs,
    succeed: () => succeedExceptFor(),
    succeedExceptFor,
    fail: reject,
  });
  return promise;
}

/** Also works with fake timers. */
const realImmediate = setImmediate;

async function endOfTick(): Promise<void> {
  // Runs fake immediates. With fake timers, this takes a millisecond.
  if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
  await new Promise((resolve) => realImmediate(resolve));
}

/** Until everything has happened that needs no commit to end. */
async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await endOfTick();
}

interface SendOptions {
  /** How many writes the request has; 1 unless given. */
  readonly writes?: number;
  /** It's the rest of a bulk that has begun. */
  readonly isContinued?: boolean;
}

/**
 * Sends a request with writes to this plant. Resolves to the id that its last outcome has, or to the
 * message of the error.
 */
async function send(
  garden: string,
  id: number,
  { writes = 1, isContinued = false }: SendOptions = {},
): Promise<unknown> {
  const write = remove(BigInt(id), garden);
  try {
    const outcomes = await group.writeAll(Array(writes).fill(write), isContinued);
    expect(outcomes).toHaveLength(writes);
    return Number((outcomes.at(-1) as { id: bigint }).id);
  } catch (error) {
    return (error as Error).message;
  }
}

/** Creates a plant with this name. Resolves as `send` does. */
async function sendNamed(garden: string, id: number, name: string): Promise<unknown> {
  const outcome = group.write(create({ garden, id: BigInt(id), name }));
  return outcome.then(
    (created) => Number((created as { id: bigint }).id),
    (error) => error.message,
  );
}

/** Starts a commit, during which other requests wait for the next group. */
async function startFirstCommit(): Promise<void> {
  void send("first", 1);
  await settle();
}

/** Ends the latest commit, and waits for the next one. */
async function succeedLatest(): Promise<void> {
  commits.at(-1)?.succeed();
  await settle();
}

/** Ends the latest commit, and waits for the next one. */
async function failLatest(error: Error): Promise<void> {
  commits.at(-1)?.fail(error);
  await settle();
}

/** Ends all commits from this one on, until there are no more. */
async function succeedFrom(index: number): Promise<void> {
  for (let next = index; next < commits.length; next++) {
    commits[next]?.succeed();
    await settle();
  }
}

/** The requests of each commit so far. */
const groups = () => commits.map(({ requests }) => requests);

const overloaded = expect.stringContaining("cannot keep up");

describe("a group", () => {
  test("has the writes that arrived during the previous commit, in order", async () => {
    await startFirstCommit();
    void send("ann", 3);
    void send("bob", 1);
    await settle();
    void send("cleo", 2);
    await settle();
    expect(groups()).toEqual([["first 1"]]);
    await succeedLatest();
    expect(groups()).toEqual([["first 1"], ["ann 3", "bob 1", "cleo 2"]]);
  });

  test("resolves each request with its own outcome", async () => {
    const ann = send("ann", 3);
    const bob = send("bob", 1, { writes: 2 });
    const cleo = send("cleo", 2);
    await settle();
    await succeedLatest();
    expect(await ann).toBe(3);
    expect(await bob).toBe(1);
    expect(await cleo).toBe(2);
  });

  test("resolves no request before it is committed", async () => {
    let isResolved = false;
    const sending = send("ann", 1).then(() => {
      isResolved = true;
    });
    await settle();
    expect(groups()).toEqual([["ann 1"]]);
    expect(isResolved).toBe(false);
    await succeedLatest();
    await sending;
  });

  test("is reported to the observer with the number of its writes", async () => {
    await startFirstCommit();
    void send("ann", 3);
    void send("bob", 1);
    void send("cleo", 2);
    await succeedFrom(0);
    expect(observedCommits).toEqual([1, 3]);
  });

  test("doesn't wait for the end of the tick if its client was alone before", async () => {
    const first = send("ann", 1);
    await settle();
    await succeedLatest();
    await first;
    void send("ann", 2);
    expect(groups()).toEqual([["ann 1"], ["ann 2"]]);
    await succeedLatest();
  });

  test("has at most 256 writes of a garden while others wait, garden by garden", async () => {
    expect(slicePlantsMax).toBe(256);
    await startFirstCommit();
    const requests = [
      send("ann", 1, { writes: 255 }),
      send("ann", 2),
      send("ann", 3),
      send("bob", 4),
      send("bob", 5),
    ];
    await succeedFrom(0);
    expect(groups()).toEqual([["first 1"], ["ann 1", "bob 4", "ann 2", "bob 5"], ["ann 3"]]);
    expect(await Promise.all(requests)).toEqual([1, 2, 3, 4, 5]);
  });

  test("has at most 1,024 writes", async () => {
    expect(groupWritesMax).toBe(1_024);
    await startFirstCommit();
    const requests = [
      send("ann", 1, { writes: 256 }),
      send("bob", 2, { writes: 256 }),
      send("cleo", 3, { writes: 256 }),
      send("dan", 4, { writes: 256 }),
      send("eve", 5),
    ];
    await succeedFrom(0);
    expect(groups()).toEqual([["first 1"], ["ann 1", "bob 2", "cleo 3", "dan 4"], ["eve 5"]]);
    expect(await Promise.all(requests)).toEqual([1, 2, 3, 4, 5]);
  });

  test("leaves a request to the next one if it would have 1,025 writes", async () => {
    await startFirstCommit();
    const requests = [
      send("ann", 1),
      send("bob", 2, { writes: 256 }),
      send("cleo", 3, { writes: 256 }),
      send("dan", 4, { writes: 256 }),
      send("eve", 5, { writes: 256 }),
    ];
    await succeedFrom(0);
    expect(groups()).toEqual([["first 1"], ["ann 1", "bob 2", "cleo 3", "dan 4"], ["eve 5"]]);
    expect(await Promise.all(requests)).toEqual([1, 2, 3, 4, 5]);
  });

  test("can be filled by a garden that is alone", async () => {
    await startFirstCommit();
    const requests = [
      send("ann", 1, { writes: 256 }),
      send("ann", 2, { writes: 256 }),
      send("ann", 3, { writes: 256 }),
      send("ann", 4, { writes: 256 }),
      send("ann", 5, { writes: 256 }),
    ];
    await succeedFrom(0);
    expect(groups()).toEqual([["first 1"], ["ann 1", "ann 2", "ann 3", "ann 4"], ["ann 5"]]);
    expect(await Promise.all(requests)).toEqual([1, 2, 3, 4, 5]);
  });

  test("has as much of a garden's text as a slice of a bulk", async () => {
    const half = "x".repeat(sliceCharactersMax / 2);
    const requests = [sendNamed("ann", 1, half), sendNamed("ann", 2, half)];
    await settle();
    await succeedFrom(0);
    expect(groups()).toEqual([["ann 1", "ann 2"]]);
    expect(await Promise.all(requests)).toEqual([1, 2]);
  });

  test("leaves a request to the next one if its garden would have more text", async () => {
    const requests = [
      sendNamed("ann", 1, "x".repeat(sliceCharactersMax)),
      sendNamed("ann", 2, "x".repeat(sliceCharactersMax)),
    ];
    await settle();
    await succeedFrom(0);
    expect(groups()).toEqual([["ann 1"], ["ann 2"]]);
    expect(await Promise.all(requests)).toEqual([1, 2]);
  });
});

describe("a failure", () => {
  const full = new PlantStoreError("storage-full", "Full.");
  const unavailable = new PlantStoreError("unavailable", "Away.");
  const bad = new Error("bad");

  test("of the storage fails the whole group", async () => {
    const requests = [send("ann", 1), send("bob", 2), send("cleo", 3), send("bob", 4)];
    await settle();
    await failLatest(full);
    expect(await Promise.all(requests)).toEqual(["Full.", "Full.", "Full.", "Full."]);
    expect(groups()).toEqual([["ann 1", "bob 2", "cleo 3", "bob 4"]]);
  });

  test("of another kind has each request tried alone, and only one fails", async () => {
    const requests = [send("ann", 1), send("bob", 2), send("cleo", 3), send("bob", 4)];
    await settle();
    await failLatest(bad);
    expect(groups().at(-1)).toEqual(["ann 1"]);
    await succeedLatest();
    expect(groups().at(-1)).toEqual(["bob 2"]);
    await failLatest(bad);
    expect(groups().at(-1)).toEqual(["cleo 3"]);
    await succeedLatest();
    expect(groups().at(-1)).toEqual(["bob 4"]);
    await succeedLatest();
    expect(await Promise.all(requests)).toEqual([1, "bad", 3, 4]);
    expect(groups()).toEqual([
      ["ann 1", "bob 2", "cleo 3", "bob 4"],
      ["ann 1"],
      ["bob 2"],
      ["cleo 3"],
      ["bob 4"],
    ]);
  });

  test.each([
    { kind: "the storage", error: full },
    { kind: "another kind", error: bad },
  ])("of $kind doesn't stop later writes", async ({ error }) => {
    const failing = send("ann", 1);
    await settle();
    await failLatest(error);
    expect(await failing).toBe(error.message);
    const later = send("ann", 2);
    await settle();
    await succeedLatest();
    expect(await later).toBe(2);
  });

  describe("of a storage that can't be used", () => {
    test("also fails requests that have waited for more than half a second", async () => {
      await startFirstCommit();
      const early = send("ann", 2);
      nowMs += lateAfterMs + 10;
      await failLatest(unavailable);
      expect(await early).toEqual(expect.stringContaining("storage cannot be used"));
      expect(groups()).toEqual([["first 1"]]);
    });

    test("leaves requests to the next commit that haven't", async () => {
      await startFirstCommit();
      const early = send("ann", 2);
      nowMs += lateAfterMs + 10;
      const late = send("bob", 3);
      await failLatest(unavailable);
      await succeedLatest();
      expect(await early).toEqual(expect.any(String));
      expect(await late).toBe(3);
      expect(groups()).toEqual([["first 1"], ["bob 3"]]);
    });
  });
});

describe("if the next group is full, a request", () => {
  /** Two gardens wait, so each has at most 256 writes in the next group. Ann's fill that. */
  async function fillNextGroup(): Promise<void> {
    await startFirstCommit();
    void send("ann", 10, { writes: slicePlantsMax });
    void send("bob", 20);
  }

  test("is refused once it has waited for more than half a second", async () => {
    await fillNextGroup();
    const early = send("ann", 11);
    nowMs += lateAfterMs + 10;
    await succeedFrom(0);
    expect(await early).toEqual(overloaded);
  });

  test("isn't refused if it is the rest of a bulk", async () => {
    await fillNextGroup();
    const rest = send("ann", 12, { writes: slicePlantsMax, isContinued: true });
    nowMs += lateAfterMs + 10;
    await succeedFrom(0);
    expect(await rest).toBe(12);
  });

  test("isn't refused if it hasn't waited for that long", async () => {
    await fillNextGroup();
    const early = send("ann", 11);
    nowMs += lateAfterMs + 10;
    const late = send("ann", 13);
    await succeedFrom(0);
    expect(await early).toEqual(overloaded);
    expect(await late).toBe(13);
  });

  test("doesn't hold up those that fit", async () => {
    await startFirstCommit();
    const large = send("ann", 10, { writes: slicePlantsMax });
    const refused = send("ann", 11);
    const other = send("bob", 20);
    nowMs += lateAfterMs + 10;
    await succeedFrom(0);
    expect(await large).toBe(10);
    expect(await refused).toEqual(overloaded);
    expect(await other).toBe(20);
  });
});

describe("a commit that doesn't end by its deadline", () => {
  let stuck: Promise<unknown>;
  let waiting: Promise<unknown>;

  beforeEach(async () => {
    jest.useFakeTimers();
    stuck = send("ann", 1);
    await endOfTick();
    waiting = send("bob", 2);
    jest.advanceTimersByTime(deadlineMs - 1);
  });

  test("is reported as stuck at its deadline, not earlier", () => {
    expect(observedStuck).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(observedStuck).toEqual([true]);
  });

  test("leaves the outcome of its writes unknown", async () => {
    jest.advanceTimersByTime(1);
    expect(await stuck).toEqual(expect.stringContaining("outcome is unknown"));
  });

  test("has the requests refused that wait for it, which aren't tried", async () => {
    jest.advanceTimersByTime(1);
    expect(await waiting).toEqual(overloaded);
    await settle();
    expect(groups()).toEqual([["ann 1"]]);
  });

  test("has later requests refused until it ends", async () => {
    jest.advanceTimersByTime(1);
    expect(await send("cleo", 3)).toEqual(overloaded);
    await settle();
    expect(groups()).toEqual([["ann 1"]]);
  });

  test("is reported as no longer stuck when it ends", async () => {
    jest.advanceTimersByTime(1);
    await succeedLatest();
    expect(observedStuck).toEqual([true, false]);
  });

  test("lets writes be committed again when it ends", async () => {
    jest.advanceTimersByTime(1);
    await succeedLatest();
    const later = send("dan", 4);
    await settle();
    await succeedLatest();
    expect(await later).toBe(4);
  });
});

describe("writes to a garden that another process holds", () => {
  const gardenHeld = expect.stringMatching(/another instance is busy with it, or another program/);

  describe("while other gardens' are committed,", () => {
    test("wait in a commit of their own", async () => {
      void send("ann", 10);
      void send("bob", 20);
      void send("ann", 11);
      await settle();
      void send("ann", 12);
      commits[0]?.succeedExceptFor("ann");
      await settle();
      expect(groups()).toEqual([
        ["ann 10", "bob 20", "ann 11"],
        ["ann 10", "ann 11", "ann 12"],
      ]);
      expect(commits[0]?.waitMs).toBeUndefined();
      expect(commits[1]?.waitMs).toBeGreaterThan(0);
      await succeedFrom(1);
    });

    test("don't hold them up", async () => {
      const held = send("ann", 10);
      const committed = send("bob", 20);
      await settle();
      commits[0]?.succeedExceptFor("ann");
      expect(await committed).toBe(20);
      const later = send("bob", 21);
      await settle();
      expect(groups()).toEqual([["ann 10", "bob 20"], ["ann 10"], ["bob 21"]]);
      expect(commits[2]?.waitMs).toBeUndefined();
      commits[2]?.succeed();
      expect(await later).toBe(21);
      commits[1]?.succeed();
      expect(await held).toBe(10);
    });

    test("aren't resolved before their own commit", async () => {
      let isResolved = false;
      const held = send("ann", 10).then((id) => {
        isResolved = true;
        return id;
      });
      const committed = send("bob", 20);
      await settle();
      commits[0]?.succeedExceptFor("ann");
      expect(await committed).toBe(20);
      await settle();
      expect(isResolved).toBe(false);
      commits[1]?.succeed();
      expect(await held).toBe(10);
    });

    test("let later ones to their garden wait for the next commit", async () => {
      const held = [send("ann", 10), send("bob", 20), send("ann", 11)];
      await settle();
      const queued = send("ann", 12);
      commits[0]?.succeedExceptFor("ann");
      await settle();
      const later = send("ann", 13);
      commits[1]?.succeed();
      expect(await Promise.all(held)).toEqual([10, 20, 11]);
      expect(await queued).toBe(12);
      await settle();
      expect(groups().at(-1)).toEqual(["ann 13"]);
      await succeedLatest();
      expect(await later).toBe(13);
    });
  });

  test("share commits with other gardens' again once none of them waits", async () => {
    const held = send("ann", 10);
    await settle();
    commits[0]?.succeedExceptFor("ann");
    await settle();
    commits[1]?.succeed();
    expect(await held).toBe(10);
    await group.drain();

    const next = send("ann", 12);
    const later = [send("ann", 11), send("bob", 20)];
    await succeedLatest();
    expect(await next).toBe(12);
    expect(groups().at(-1)).toEqual(["ann 11", "bob 20"]);
    await succeedLatest();
    expect(await Promise.all(later)).toEqual([11, 20]);
  });

  describe("that were queued five seconds ago", () => {
    /** Ann's garden is held for four seconds. Then another write to it arrives. */
    async function waitFourSeconds() {
      const early = send("ann", 10);
      await settle();
      commits[0]?.succeedExceptFor("ann");
      await settle();
      nowMs += heldMsMax - 1_000;
      const late = send("ann", 11);
      commits[1]?.succeedExceptFor("ann");
      await settle();
      return { early, late };
    }

    test("are refused with the reason", async () => {
      const { early, late } = await waitFourSeconds();
      nowMs += 1_000;
      commits[2]?.succeedExceptFor("ann");
      expect(await early).toEqual(gardenHeld);
      await settle();
      await succeedFrom(3);
      await late;
    });

    test("were waited for until then, and no longer", async () => {
      await waitFourSeconds();
      expect(commits[1]?.requests).toEqual(["ann 10"]);
      expect(commits[1]?.waitMs).toBe(heldMsMax);
      expect(commits[2]?.requests).toEqual(["ann 10", "ann 11"]);
      expect(commits[2]?.waitMs).toBe(1_000);
      await succeedFrom(2);
    });

    test("don't take later ones with them", async () => {
      const { late } = await waitFourSeconds();
      nowMs += 1_000;
      commits[2]?.succeedExceptFor("ann");
      await settle();
      commits[3]?.succeed();
      expect(await late).toBe(11);
    });
  });

  test("are waited for a moment even if their five seconds are nearly over", async () => {
    const request = send("ann", 10);
    await settle();
    nowMs += heldMsMax - 1;
    commits[0]?.succeedExceptFor("ann");
    await settle();
    expect(commits[1]?.waitMs).toBeCloseTo(attemptMsMin);
    commits[1]?.succeed();
    expect(await request).toBe(10);
  });

  describe("are bounded:", () => {
    beforeEach(async () => {
      // A commit waits for this one, so it no longer counts.
      void send("ann", 10);
      await settle();
      commits[0]?.succeedExceptFor("ann");
      await settle();
    });

    test("1,024 requests of a garden can wait, and one more is refused", async () => {
      expect(heldRequestsMax).toBe(1_024);
      const requests = Array.from({ length: 1_024 }, () => send("ann", 11));
      expect(await send("ann", 12)).toEqual(gardenHeld);
      await succeedFrom(1);
      expect(await Promise.all(requests)).toEqual(Array(1_024).fill(11));
    });

    test("the rest of a bulk can wait in addition", async () => {
      const requests = Array.from({ length: 1_024 }, () => send("ann", 11));
      const rest = send("ann", 13, { isContinued: true });
      await succeedFrom(1);
      expect(await Promise.all(requests)).toHaveLength(1_024);
      expect(await rest).toBe(13);
    });

    test("a mebibyte of a garden's text can wait, and no more", async () => {
      expect(heldCharactersMax).toBe(2 ** 20);
      const long = sendNamed("ann", 21, "x".repeat(heldCharactersMax));
      const tooMuch = sendNamed("ann", 22, "Fern");
      expect(await tooMuch).toEqual(gardenHeld);
      await succeedFrom(1);
      expect(await long).toBe(21);
    });
  });

  test("count as waiting again if their garden is still held after a commit", async () => {
    const long = sendNamed("ann", 10, "x".repeat(heldCharactersMax));
    const others = [send("bob", 20), send("cleo", 30)];
    await settle();
    commits[0]?.succeedExceptFor("ann", "bob", "cleo");
    await settle();
    // Bob and Cleo's gardens are waited for now, so Ann's text waits for its turn.
    commits[1]?.succeedExceptFor("ann");
    await settle();
    expect(await sendNamed("ann", 11, "Fern")).toEqual(gardenHeld);
    await succeedFrom(2);
    expect(await long).toBe(10);
    expect(await Promise.all(others)).toEqual([20, 30]);
  });

  test("aren't overtaken by later ones while another garden's are committed", async () => {
    const first = [send("ann", 10), send("bob", 20)];
    await settle();
    commits[0]?.succeedExceptFor("ann", "bob");
    await settle();
    commits[2]?.succeed();
    await settle();
    const next = send("ann", 11);
    await settle();
    expect(groups()).toEqual([["ann 10", "bob 20"], ["ann 10"], ["bob 20"]]);
    commits[1]?.succeed();
    expect(await Promise.all(first)).toEqual([10, 20]);
    await settle();
    expect(groups().at(-1)).toEqual(["ann 11"]);
    await succeedLatest();
    expect(await next).toBe(11);
  });

  test("are committed in their order, as many together as fit into a group", async () => {
    const requests = [send("ann", 10)];
    await settle();
    commits[0]?.succeedExceptFor("ann");
    await settle();
    requests.push(send("ann", 11), send("ann", 12, { writes: groupWritesMax }), send("ann", 13));
    await succeedFrom(1);
    expect(groups()).toEqual([["ann 10"], ["ann 10"], ["ann 11"], ["ann 12"], ["ann 13"]]);
    expect(await Promise.all(requests)).toEqual([10, 11, 12, 13]);
  });

  test("wait for two gardens at once, and for more of them in turn", async () => {
    const requests = [send("ann", 10), send("bob", 20), send("cleo", 30)];
    await settle();
    commits[0]?.succeedExceptFor("ann", "bob", "cleo");
    await settle();
    expect(groups().slice(1)).toEqual([["ann 10"], ["bob 20"]]);
    commits[1]?.succeedExceptFor("ann");
    await settle();
    expect(groups().slice(3)).toEqual([["cleo 30"]]);
    commits[2]?.succeed();
    await settle();
    expect(groups().slice(4)).toEqual([["ann 10"]]);
    commits[3]?.succeed();
    commits[4]?.succeed();
    expect(await Promise.all(requests)).toEqual([10, 20, 30]);
  });
});
