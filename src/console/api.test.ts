/** How the console reads and writes JSON: every digit of an id, whatever a plant is called. */
import { expect, test } from "bun:test";
import { makeKey, parsePlants, readNext, renderDraft } from "./api.ts";

test.each([
  ["9223372036854775807", "Fern"],
  ["-9223372036854775808", 'x","id":5,"y'],
  ["9007199254740993", '"id":1'],
  ["0", '\\"id":2'],
  ["1", "\\"],
])("reads the id %s of a plant called %p, digit by digit", (id, name) => {
  const text = `[{"id":${id},"name":${JSON.stringify(name)},"tag":"\\"id\\":3"}]`;
  expect(parsePlants(text)).toEqual([{ id, name, tag: '"id":3' }]);
});

test.each([
  "{}",
  "null",
  "[null]",
  "[7]",
  '[{"name":"Fern","tag":""}]',
  '[{"id":1,"name":"Fern"}]',
])("takes nothing else for plants: %s", (text) =>
  expect(() => parsePlants(text)).toThrow(TypeError),
);

test.each([
  [{ name: "Fern", tag: "", id: "" }, '{"name":"Fern"}'],
  [{ name: " ", tag: "a", id: "7" }, '{"name":" ","tag":"a","id":7}'],
  [{ name: "", tag: "", id: "9223372036854775808" }, '{"name":"","id":9223372036854775808}'],
  [{ name: "a", tag: "", id: "-0" }, '{"name":"a","id":"-0"}'],
  [{ name: "a", tag: "", id: "007" }, '{"name":"a","id":"007"}'],
  [{ name: "a", tag: "", id: "1e3" }, '{"name":"a","id":"1e3"}'],
  [{ name: "a", tag: "", id: '1,"x":2' }, '{"name":"a","id":"1,\\"x\\":2"}'],
])("writes what was typed, and leaves its faults to the service: %p", (draft, text) => {
  expect(renderDraft(draft)).toBe(text);
});

test.each(["/plants", "/v1/plants", "https://elsewhere.example/plants"])(
  "goes on at its own address, wherever a link leads: %s",
  (place) => {
    const headers = new Headers({ Link: `<${place}?limit=500&after=-7>; rel="next"` });
    expect(readNext(headers)).toBe("plants?limit=500&after=-7");
    expect(readNext(new Headers())).toBeUndefined();
  },
);

test("makes keys that the service takes, never twice the same", () => {
  const keys = Array.from({ length: 100 }, makeKey);
  expect(new Set(keys).size).toBe(100);
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{32}$/);
});
