/** Which of an engine's numbered schemas this version can use. */
import { PlantStoreError } from "../domain/errors.ts";

/** Fails, in words that follow "Cannot open …: ", unless it is the newest; 0 is an empty store. */
export function checkSchema(found: number, newest: number): void {
  if (found === newest || found === 0) return;
  const reason =
    found > newest
      ? `its schema is ${found}, and this version knows schemas up to ${newest}: use a newer version`
      : `its schema is ${found}, of version 1.0 or older: open it with 2.0 first`;
  throw new PlantStoreError("unavailable", reason);
}
