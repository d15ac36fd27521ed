/** Who is admitted at once, who waits and in which order, and who is refused. */
import { expect, test } from "bun:test";
import { PlantStoreError } from "../domain/errors.ts";
import { Admission, type AdmissionOptions, admissionDefaults } from "./admission.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

function busyWait(durationMs: number): void {
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; );
}

/** Ticks so short that a request of 2 ms uses one up. */
const shortTicks = { tickMs: 1, crowdedTickMs: 1, startedMin: 1, waitMs: 30_000 };

function makeAdmission(options: Partial<AdmissionOptions> = {}): Admission {
  return new Admission({ ...admissionDefaults, ...shortTicks, ...options });
}

/** What became of each request so far: "a" ran, "-a" was refused. */
function startAll(admission: Admission, names: string): string[] {
  const done: string[] = [];
  for (const name of names) {
    admission.start((isAdmitted) => {
      done.push(isAdmitted ? name : `-${name}`);
      busyWait(2);
    });
  }
  return done;
}

test("requests start at once while a tick is young", () => {
  expect(startAll(new Admission(), "abcdef")).toEqual([..."abcdef"]);
});

test("requests beyond a tick's time run in later ticks, in their order", async () => {
  const done = startAll(makeAdmission(), "abcd");
  expect(done).toEqual(["a"]);
  while (done.length < 2) await nextTick();
  expect(done).toEqual(["a", "b"]);
  while (done.length < 4) await nextTick();
  expect(done).toEqual([..."abcd"]);
});

test("nobody overtakes those who wait", async () => {
  const admission = makeAdmission();
  const done = startAll(admission, "abc");
  await nextTick();
  const later = startAll(admission, "d");
  expect([...done, ...later]).toEqual(["a", "b"]);
  while (later.length < 1) await nextTick();
  expect(done).toEqual(["a", "b", "c"]);
});

test("requests that waited too long are refused, also those that find the queue full", async () => {
  const late = startAll(makeAdmission({ waitMs: 3 }), "abc");
  busyWait(5);
  await nextTick();
  expect(late).toEqual(["a", "-b", "-c"]);
  const crowded = startAll(makeAdmission({ waitingMax: 2 }), "abcd");
  while (crowded.length < 4) await nextTick();
  expect(crowded.toSorted()).toEqual(["-d", "a", "b", "c"]);
});

test("a request that fails after it waited fails for its caller alone", async () => {
  const admission = makeAdmission();
  startAll(admission, "a");
  const failing = Promise.resolve(
    admission.start(() => {
      throw new Error("broken");
    }),
  ).catch((error) => error.message);
  const done = startAll(admission, "b");
  expect(await failing).toBe("broken");
  while (done.length < 1) await nextTick();
});

test("a tick makes a bounded number of chunks of long lists, in turn", async () => {
  const admission = makeAdmission({ chunksMax: 2 });
  const made: number[] = [];
  for (let list = 0; list < 5; list++) admission.nextChunk(async () => made.push(list));
  await nextTick();
  expect(made).toEqual([0, 1]);
  while (made.length < 5) await nextTick();
  expect(made).toEqual([0, 1, 2, 3, 4]);
});

test("a long list begins as soon as fewer than the limit are being made; short ones need not wait", async () => {
  const admission = makeAdmission({ listsMax: 2, chunksMax: 1 });
  const done: string[] = [];
  const chunks = ["a", "b"].map((name) => admission.nextChunk(async () => done.push(name)));
  const list = admission.withPermit("list", async () => done.push("new"));
  expect(await admission.withPermit("read", async () => "short")).toBe("short");
  await Promise.all([...chunks, list]);
  expect(done).toEqual(["a", "new", "b"]);
});

test("a bounded number of writes is in flight; others wait, and reads don't wait for them", async () => {
  const admission = makeAdmission({ inFlightMax: 2 });
  const ends: (() => void)[] = [];
  const write = () => new Promise<string>((resolve) => ends.push(() => resolve("written")));
  const writes = [1, 2, 3].map(() => admission.withPermit("write", write));
  expect(ends).toHaveLength(2);
  expect(await admission.withPermit("read", async () => "read")).toBe("read");
  ends[0]?.();
  expect(await writes[0]).toBe("written");
  expect(ends).toHaveLength(3);
  for (const end of ends) end();
  expect(await Promise.all(writes)).toEqual(["written", "written", "written"]);
});

test("work that waits too long for the storage is refused, and what fails makes room", async () => {
  const admission = makeAdmission({ inFlightMax: 1, waitMs: 20 });
  const stuck = Promise.withResolvers<never>();
  const first = admission.withPermit("write", () => stuck.promise).catch((error) => error.message);
  const second = await admission.withPermit("write", async () => {}).catch((error) => error);
  expect(second).toBeInstanceOf(PlantStoreError);
  expect(second.code).toBe("unavailable");
  stuck.reject(new Error("the disk is gone"));
  expect(await first).toBe("the disk is gone");
  expect(await admission.withPermit("write", async () => "written")).toBe("written");
});
