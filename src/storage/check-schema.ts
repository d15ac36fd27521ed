/** The numbered schemas of an engine. */
import { PlantStoreError } from "../domain/errors.ts";

interface Schemas {
  readonly newest: number;
  /** What leads to the newest, by the schema that was found; 0: nothing is stored yet. */
  readonly upgrades: Readonly<Record<number, string>>;
}

/** Fails, in words that follow "Cannot open …: ", unless this version can use or upgrade it. */
export function checkSchema(found: number, { newest, upgrades }: Schemas): void {
  if (found === newest || upgrades[found] !== undefined) return;
  const reason =
    found > newest
      ? `its schema is ${found}, and this version knows schemas up to ${newest}: use a newer version`
      : `its schema is ${found}, of a version before 1.0: upgrade to 1.0 first, then to this version`;
  throw new PlantStoreError("unavailable", reason);
}
