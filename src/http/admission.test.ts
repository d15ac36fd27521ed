/** Who is admitted at once, who waits and in which order, and who is refused. */
import { expect, test } from "bun:test";
import { PlantStoreError } from "../domain/errors.ts";
import {
  Admission,
  type AdmissionOptions,
  admissionDefaults,
  type PermitKind,
} from "./admission.ts";

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
    admission.start(admission.deadline(), (isAdmitted) => {
      done.push(isAdmitted ? name : `-${name}`);
      busyWait(2);
    });
  }
  return done;
}

function withPermit<Result>(
  admission: Admission,
  kind: PermitKind,
  work: () => Promise<Result>,
  user = "ann",
): Promise<Result> {
  return admission.withPermit(kind, user, admission.deadline(), work);
}

test("requests beyond a tick's time run in later ticks, in their order", async () => {
  const done = startAll(makeAdmission(), "abcd");
  expect(done).toEqual(["a"]);
  while (done.length < 2) await nextTick();
  expect(done).toEqual(["a", "b"]);
  while (done.length < 4) await nextTick();
  expect(done).toEqual([..."abcd"]);
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

test("a long list begins as soon as fewer than the limit are being made; short ones need not wait", async () => {
  const admission = makeAdmission({ listsMax: 3, turnsMax: 1 });
  const done: string[] = [];
  const chunks = ["a", "b"].map((name) => admission.nextChunk("ann", async () => done.push(name)));
  const list = withPermit(admission, "list", async () => done.push("new"));
  expect(await withPermit(admission, "read", async () => "short")).toBe("short");
  await Promise.all([...chunks, list]);
  expect(done).toEqual(["a", "new", "b"]);
});

test("a bounded number of writes is in flight; others wait, and reads don't wait for them", async () => {
  const admission = makeAdmission({ inFlightMax: 3 });
  const ends: (() => void)[] = [];
  const write = () => new Promise<string>((resolve) => ends.push(() => resolve("written")));
  const writes = [1, 2, 3].map(() => withPermit(admission, "write", write));
  expect(ends).toHaveLength(2);
  expect(await withPermit(admission, "read", async () => "read")).toBe("read");
  ends[0]?.();
  expect(await writes[0]).toBe("written");
  expect(ends).toHaveLength(3);
  for (const end of ends) end();
  expect(await Promise.all(writes)).toEqual(["written", "written", "written"]);
});

test("work that waits too long for the storage is refused, and what fails makes room", async () => {
  const admission = makeAdmission({ inFlightMax: 1, waitMs: 20 });
  const stuck = Promise.withResolvers<never>();
  const first = withPermit(admission, "write", () => stuck.promise).catch((error) => error.message);
  const second = await withPermit(admission, "write", async () => {}).catch((error) => error);
  expect(second).toBeInstanceOf(PlantStoreError);
  expect(second.code).toBe("unavailable");
  stuck.reject(new Error("the disk is gone"));
  expect(await first).toBe("the disk is gone");
  expect(await withPermit(admission, "write", async () => "written")).toBe("written");
});

test("one user gets half of what may be in flight, and others start at once", async () => {
  const admission = makeAdmission({ listsMax: 8 });
  const started: string[] = [];
  const ends: (() => void)[] = [];
  const start = (user: string) =>
    withPermit(
      admission,
      "list",
      () => {
        started.push(user);
        return new Promise<void>((resolve) => ends.push(resolve));
      },
      user,
    );
  const hog = Array.from({ length: 10 }, () => start("hog"));
  const others = ["ann", "bob"].map(start);
  expect(started.join(" ")).toBe("hog hog hog hog ann bob");
  for (let ended = 0; ended < 12; ended++) {
    ends[ended]?.();
    await nextTick();
  }
  await Promise.all([...hog, ...others]);
});

test("users take turns, however many of them one asks for", async () => {
  const admission = makeAdmission({ turnsMax: 2 });
  const order: string[] = [];
  const turns = ["hog", "hog", "hog", "hog", "ann", "bob"].map((user) =>
    admission.turn(user).then(() => order.push(user)),
  );
  await Promise.all(turns);
  expect(order).toEqual(["hog", "ann", "bob", "hog", "hog", "hog"]);
});

test("bytes are held up to a bound, a share for each user, until they are given back", () => {
  const admission = makeAdmission({ heldBytesMax: 100 });
  const hog = admission.hold("hog");
  hog.add(50);
  expect(() => hog.add(1)).toThrow(PlantStoreError);
  expect(() => admission.hold("hog").add(1)).toThrow(PlantStoreError);
  using ann = admission.hold("ann");
  ann.add(25);
  hog[Symbol.dispose]();
  expect(() => hog.add(1)).toThrow(PlantStoreError);
  using again = admission.hold("hog");
  again.add(37);
});
