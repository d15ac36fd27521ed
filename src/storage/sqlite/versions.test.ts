/** Versions of gardens: a part is absent while a commit may change it, and different after that. */
import { expect, test } from "bun:test";
import type { Write } from "../../domain/storage.ts";
import { GardenVersions } from "./versions.ts";

const append: Write = {
  kind: "create",
  garden: "home",
  id: undefined,
  name: "Fern",
  tag: "",
  idempotency: undefined,
};
const remove: Write = { kind: "delete", garden: "home", id: 7n };

test("a commit of appends leaves the version without appends alone", () => {
  const versions = new GardenVersions();
  const end = versions.begin([append, append]);
  expect(versions.read("home")).toEqual({ all: undefined, withoutAppends: 0 });
  end();
  expect(versions.read("home")).toEqual({ all: 2, withoutAppends: 0 });
});

test("a commit of other writes changes both parts, for all threads", () => {
  const versions = new GardenVersions();
  const onAnotherThread = new GardenVersions(versions.memory);
  const end = versions.begin([append, remove]);
  expect(onAnotherThread.read("home")).toEqual({ all: undefined, withoutAppends: undefined });
  end();
  expect(onAnotherThread.read("home")).toEqual({ all: 2, withoutAppends: 2 });
});
