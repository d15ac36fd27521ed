/** Versions of gardens: a part is absent while a commit may change it, and different after that. */
import { expect, test } from "bun:test";
import { create, remove } from "../../../test/storage-contract/tested-storage.ts";
import { GardenVersions } from "./versions.ts";

test("a commit of appends leaves the version without appends alone", () => {
  const versions = new GardenVersions();
  const end = versions.begin([create(), create()]);
  expect(versions.read("home")).toEqual({ all: undefined, withoutAppends: 0 });
  end();
  expect(versions.read("home")).toEqual({ all: 2, withoutAppends: 0 });
});

test("a commit of other writes changes both parts, for all threads", () => {
  const versions = new GardenVersions();
  const onAnotherThread = new GardenVersions(versions.memory);
  const end = versions.begin([create(), remove(7n)]);
  expect(onAnotherThread.read("home")).toEqual({ all: undefined, withoutAppends: undefined });
  end();
  expect(onAnotherThread.read("home")).toEqual({ all: 2, withoutAppends: 2 });
});
