/**
 * The short form: slow clients hold some hundred connections, and good ones are answered all the
 * same.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { takeVitalSigns } from "../vital-signs.ts";
import { SlowAttack } from "./slow-attack.ts";

setDefaultTimeout(300_000);

const connections = 300;
const growthMaxMb = 150;

/** The memory and the open files of a process can be looked at there. */
const isLinux = process.platform === "linux";

test.skipIf(!isLinux)(
  "good clients are answered while slow ones hold 300 connections, in bounded memory",
  async () => {
    const attack = await SlowAttack.start();
    await attack.measure(5);
    const before = takeVitalSigns(attack.service.pid);
    const { faults, waitsMs, slow, signs } = await attack.attack(connections, 10);
    expect(faults).toEqual([]);
    expect(waitsMs.length).toBe(80);
    expect(slow.open).toBeGreaterThan(connections / 2);
    expect(signs.residentMb - before.residentMb).toBeLessThan(growthMaxMb);
    await attack.stop();
  },
);
