/** Modules that are loaded when they are first needed, and only while there is room for it. */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { overloaded } from "../domain/errors.ts";
import { once } from "./made-once.ts";

/** More than the runtime opens at once to load any of them. */
const spareDescriptors = 32;

/**
 * Runs it once for all who ask. Fails with `overloaded` while clients hold nearly all descriptors:
 * what the runtime cannot open then it takes for missing ever after, or it ends the process.
 */
export function lateModule<Module>(load: () => Promise<Module>): () => Promise<Module> {
  return once(async () => {
    if (!hasRoom()) throw overloaded;
    return load();
  });
}

function hasRoom(): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < spareDescriptors) opened.push(openSync(devNull, "r"));
    return true;
  } catch {
    return false;
  } finally {
    for (const each of opened) closeSync(each);
  }
}
