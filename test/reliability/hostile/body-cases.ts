/** Bodies that are not what they seem: their type, encoding, characters and shape. */
import {
  authorization,
  chunk,
  chunked,
  create,
  fern,
  type HostileCase,
  head,
  host,
  lastChunk,
  post,
} from "./hostile-case.ts";

function typed(type: string, body = fern): string {
  return (
    head(
      "POST /plants HTTP/1.1",
      host,
      authorization,
      `Content-Length: ${body.length}`,
      ...(type === "" ? [] : [`Content-Type: ${type}`]),
    ) + body
  );
}

export const bodyCases: readonly HostileCase[] = [
  ["a body without a type", typed(""), "415 open"],
  ["a type with a charset", typed("application/json; charset=utf-8"), "201 open"],
  ["a type with another charset", typed("application/json; charset=utf-16"), "415 open"],
  [
    "a type with two charsets",
    typed("application/json; charset=utf-8; charset=utf-16"),
    "415 open",
  ],
  ["a type with another parameter", typed("application/json; q=1"), "415 open"],
  ["a type that only begins well", typed("application/jsonx"), "415 open"],
  ["a type of a form", typed("application/x-www-form-urlencoded", "name=Fern"), "415 open"],
  ["a type of parts", typed("multipart/form-data; boundary=x", "--x--"), "415 open"],
  ["a type of XML", typed("application/xml", "<name>Fern</name>"), "415 open"],
  ["two types", typed("application/json\r\nContent-Type: text/plain"), "415 open"],
  ["a type in capitals", typed("APPLICATION/JSON"), "201 open"],
  ["a compressed body", create("\x1f\x8b\x08\x00", "Content-Encoding: gzip"), "415 open"],
  ["a body that is said to be identity", create(fern, "Content-Encoding: identity"), "201 open"],
  ["a body compressed by two ways", create(fern, "Content-Encoding: gzip, br"), "415 open"],
  ["a name that is no UTF-8", create('{"name":"\xff\xfe"}'), "400 closed"],
  ["UTF-8 of too many bytes", create('{"name":"\xc0\xaf"}'), "400 closed"],
  ["UTF-8 that is cut off", create('{"name":"\xe2\x82'), "400 closed"],
  ["a surrogate as UTF-8", create('{"name":"\xed\xa0\x80"}'), "400 closed"],
  ["UTF-16", create("\xff\xfe{\0}\0"), "400 closed"],
  ["a byte order mark", create(`\xef\xbb\xbf${fern}`), "400 open"],
  ["a zero byte behind the object", create(`${fern}\0`), "400 open"],
  ["two objects", create(fern + fern), "400 open"],
  ["brackets 30,000 deep", create("[".repeat(30_000) + "]".repeat(30_000)), "400 open"],
  ["objects 10,000 deep", create(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`), "400 open"],
  [
    "a field of 10,000 brackets",
    create(`{"name":${"[".repeat(10_000)}${"]".repeat(10_000)}}`),
    "400 open",
  ],
  [
    "5,000 fields",
    create(`{${Array.from({ length: 5_000 }, (_, at) => `"${at}":0`).join()}}`),
    "400 open",
  ],
  ["a number of 60,000 digits", create(`{"name":"a","id":${"9".repeat(60_000)}}`), "400 open"],
  ["an exponent without end", create(`{"name":"a","id":1e${"9".repeat(400)}}`), "400 open"],
  ["a prototype as a field", create('{"name":"a","__proto__":{"id":1}}'), "400 open"],
  ["an empty body", post("Content-Length: 0"), "400 open"],
  ["white space", create("   "), "400 open"],
  [
    "a body in chunks that splits a character",
    post(chunked) + chunk('{"name":"\xc3') + chunk('\xa9"}') + lastChunk,
    "201 open",
  ],
];
