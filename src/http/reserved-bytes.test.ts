/** How much each garden may reserve. */
import { expect, test } from "bun:test";
import { PlantStoreError } from "../domain/errors.ts";
import { ReservedBytes } from "./reserved-bytes.ts";

test("bytes are reserved up to a bound, a share for each garden, until they are given back", () => {
  const bytes = new ReservedBytes(100);
  const hog = bytes.open("hog");
  hog.add(50);
  expect(() => hog.add(1)).toThrow(PlantStoreError);
  expect(() => bytes.open("hog").add(1)).toThrow(PlantStoreError);
  const ann = bytes.open("ann");
  ann.add(25);
  hog.release();
  expect(() => hog.add(1)).toThrow(PlantStoreError);
  const again = bytes.open("hog");
  again.add(37);
});
