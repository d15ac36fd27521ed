/** The real program keeps its promises when it is killed at any moment or told to stop. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { live, moments } from "./prove.ts";

setDefaultTimeout(120_000);

const seed = 6;

test("every response holds, whenever the service is killed", async () => {
  // The test below has the stop, whose long list takes long to fill.
  const ends = moments.filter((moment) => moment !== "stop");
  const { faults, figures } = await live({ seed, ends, threads: 2, isSecure: false });
  expect(faults).toEqual([]);
  expect(figures["confirmed writes"]).toBeGreaterThan(0);
  expect(figures.bulks).toBeGreaterThan(0);
});

test("a stop cuts no response short over TLS", async () => {
  const { faults } = await live({ seed, ends: ["stop"], threads: 1, isSecure: true });
  expect(faults).toEqual([]);
});
