/** Comma-separated values: what RFC 4180 allows, what it does not, and back again. */
import { describe, expect, test } from "bun:test";
import { renderCsvRecord, scanCsvRecord } from "./csv.ts";

describe("a record", () => {
  test.each<[text: string, fields: string[]]>([
    ["a\n", ["a"]],
    ["a\r\n", ["a"]],
    ["\n", [""]],
    ["a,b,c\n", ["a", "b", "c"]],
    [",\r\n", ["", ""]],
    [" a , b \n", [" a ", " b "]],
    ['"a"\r\n', ["a"]],
    ['"",""\n', ["", ""]],
    ['"a,b","c\r\nd"\r\n', ["a,b", "c\r\nd"]],
    ['"say ""hi"""\n', ['say "hi"']],
    ['""""\n', ['"']],
    ['"a\r"\r\n', ["a\r"]],
  ])("%j has the fields %j", (text, fields) => {
    expect(scanCsvRecord(text, 0)).toEqual({ fields, error: undefined, end: text.length });
    expect(scanCsvRecord(`x${text}next`, 1)).toMatchObject({ fields, end: text.length + 1 });
  });

  test.each(["", "a", "a,b", "a\r", '"a', '"a\n', '"a"', '"a""\n', '"a",\n'.slice(0, -1)])(
    "%j is not whole",
    (text) => {
      expect(scanCsvRecord(text, 0)).toBeUndefined();
    },
  );

  test.each(['5" pot\n', 'a"b"\n', "a\rb\n", "a\r,b\n", '"a"b\n', '"a" \n', '"a"\r,b\n'])(
    "%j has an error, and ends where its line ends",
    (text) => {
      const record = scanCsvRecord(`${text}next,line\n`, 0);
      expect(record?.error).toBeString();
      expect(record?.end).toBe(text.length);
    },
  );
});

test("what is rendered is read as it was", () => {
  const records = [["a"], ["", "a,b", 'c"d'], ["\r\n", '"', '""'], [" ", "\n", ","], ["ü", "盆栽"]];
  for (const fields of records) {
    const text = renderCsvRecord(fields);
    expect(scanCsvRecord(text, 0)).toEqual({ fields, error: undefined, end: text.length });
  }
  expect(renderCsvRecord(["7", "a b", ""])).toBe("7,a b,\r\n");
});
