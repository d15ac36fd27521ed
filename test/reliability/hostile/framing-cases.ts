/** Where a body ends: lengths that lie or contradict each other, and chunks. */
import {
  chunk,
  chunked,
  create,
  expecting,
  fern,
  get,
  type HostileCase,
  lastChunk,
  pause,
  post,
  type Step,
  smuggled,
} from "./hostile-case.ts";

/** One request for a parser that uses the length, two for one that uses the chunks. */
const hiddenBehindChunks = lastChunk + smuggled;
const wholeInChunks = chunk(fern) + lastChunk;

function length(value: string | number): string {
  return `Content-Length: ${value}`;
}

export const lengthCases: readonly HostileCase[] = [
  // A length and chunks.
  ...expecting("400 closed", {
    "a length that covers a request behind the last chunk (CL.TE)":
      post(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "the same with the chunks named first":
      post(chunked, length(hiddenBehindChunks.length)) + hiddenBehindChunks,
    "a length that ends within the chunks (TE.CL)":
      post(length(4), chunked) + chunk(smuggled) + lastChunk,
    "a length of 0 and chunks": post(length(0), chunked) + wholeInChunks,
    "a length and chunks that agree": post(length(wholeInChunks.length), chunked) + wholeInChunks,
    "a length and chunks on a GET":
      get(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "a length and an encoding that is identity":
      post(length(fern.length), "Transfer-Encoding: identity") + fern,
    "a length and an empty Transfer-Encoding":
      post(length(fern.length), "Transfer-Encoding:") + fern,
    "a length and an encoding that is unknown":
      post(length(fern.length), "Transfer-Encoding: cow") + fern,
  }),
  // Transfer-Encoding in disguise.
  ...expecting("400 closed", {
    "Transfer-Encoding twice, chunked": post(chunked, chunked) + wholeInChunks,
    "Transfer-Encoding twice, chunked and identity":
      post(chunked, "Transfer-Encoding: identity") + hiddenBehindChunks,
    "Transfer-Encoding twice, identity and chunked":
      post("Transfer-Encoding: identity", chunked) + hiddenBehindChunks,
    "Transfer-Encoding twice, one of them unknown (TE.TE)":
      post(chunked, "Transfer-Encoding: cow") + hiddenBehindChunks,
    "a space before the colon of Transfer-Encoding":
      post("Transfer-Encoding : chunked") + hiddenBehindChunks,
    "a tab before the colon of Transfer-Encoding":
      post("Transfer-Encoding\t: chunked") + hiddenBehindChunks,
    "Transfer-Encoding folded onto a second line":
      post("Transfer-Encoding:\r\n chunked") + hiddenBehindChunks,
    "Transfer-Encoding behind a bare line feed":
      post("X: y\nTransfer-Encoding: chunked") + hiddenBehindChunks,
    "Transfer-Encoding behind a bare carriage return":
      post("X: y\rTransfer-Encoding: chunked", length(fern.length)) + fern,
    "chunks in HTTP/1.0": post(chunked).replace("/1.1", "/1.0") + wholeInChunks,
  }),
  ...expecting("201 open", {
    "chunked in capitals": post("TRANSFER-ENCODING: CHUNKED") + wholeInChunks,
    "chunked behind a tab": post("Transfer-Encoding:\tchunked") + wholeInChunks,
    "chunked before spaces": post("Transfer-Encoding: chunked  \t") + wholeInChunks,
  }),
  ...expecting("400 open", {
    "Transfer-Encoding with an underscore":
      post("Transfer_Encoding: chunked", length(hiddenBehindChunks.length)) + hiddenBehindChunks,
  }),
  // Content-Length.
  ...expecting("201 open", {
    "a length that is right": create(fern),
    "a length with zeros before it": post(length("00015")) + fern,
    "a length behind a tab": post("Content-Length:\t15") + fern,
  }),
  ...expecting("400 closed", {
    "the same length twice": create(fern, length(fern.length)) + smuggled,
    "two lengths, the first shorter": post(length(0), length(15)) + fern,
    "two lengths, the second shorter": post(length(15), length(0)) + fern,
    "two lengths on a GET": get(length(smuggled.length), length(0)) + smuggled,
    "a space before the colon of Content-Length": post("Content-Length : 15") + fern,
    "a GET whose chunks hold a request": get(chunked) + chunk(smuggled) + lastChunk,
    "a GET with the last chunk only": get(chunked) + lastChunk,
  }),
  ["a length beyond 32 bits", post(length("4294967311")) + fern, "413 closed"],
  ...expecting("400 open", {
    "a request where a body should be, on a GET": get(length(smuggled.length)) + smuggled,
    "neither length nor chunks": post(),
  }),
  ["a length of 0 on a GET", get(length(0)), "200 open"],
  ...[
    ...["xchunked", "chunkedx", "chunke", "identity", "gzip", "gzip, chunked"],
    ...["chunked, gzip", "chunked, identity", "identity, chunked", "chunked, chunked"],
    ...["chunked,", ",chunked", '"chunked"', "'chunked'", "chunked;q=1", "chunked ;"],
    ...["\x0bchunked", "chunked\x0c", "\xa0chunked", "chunked\x00", "chunked foo"],
    ...["chun\tked", ""],
  ].map(
    (value): HostileCase => [
      `Transfer-Encoding of ${JSON.stringify(value)}`,
      post(`Transfer-Encoding: ${value}`) + hiddenBehindChunks,
      "400 closed",
    ],
  ),
  ...[
    ...["15, 15", "15,15", "0, 15", "15,", "-1", "-0", "+15", "0x0f", "0xF", "f"],
    ...["1.5e1", "15.0", "15 0", "1 5", "15;", "15a", '"15"', "\x0b15", "15\x00", "१५"],
    ...["1_5", "18446744073709551616", "18446744073709551631", "9223372036854775807"],
    ...["99999999999999999999999999999999999999", "", " ", "NaN", "Infinity"],
  ].map(
    (value): HostileCase => [
      `Content-Length of ${JSON.stringify(value)}`,
      post(length(Buffer.from(value).toString("latin1"))) + fern,
      "400 closed",
    ],
  ),
];

function chunks(...text: readonly string[]): string {
  return post(chunked) + text.join("");
}

/** A body of one chunk under a size line of any kind. */
function sized(size: string, rest = lastChunk): string {
  return chunks(`${size}\r\n${fern}\r\n${rest}`);
}

export const chunkCases: readonly HostileCase[] = [
  ...expecting("201 open", {
    "one chunk": chunks(chunk(fern), lastChunk),
    "a chunk for every byte": chunks(...Array.from(fern, chunk), lastChunk),
    "a packet for every byte": [
      post(chunked),
      ...Array.from(chunk(fern) + lastChunk).flatMap((byte): Step[] => [pause, byte]),
    ],
    "a size in capitals": sized("F"),
    "a size with zeros before it": sized("000f"),
    "a size with many zeros before it": sized(`${"0".repeat(40)}f`),
    "an extension": sized("f;a=b"),
    "an extension without a value": sized("f;a"),
    "an extension in quotes": sized('f;a="b"'),
    "a bare semicolon": sized("f;"),
    "extensions on a thousand chunks": chunks(
      ...Array.from(fern.padEnd(1_000), (byte) => `1;${"a".repeat(60)}\r\n${byte}\r\n`),
      lastChunk,
    ),
    "a last chunk of many zeros": chunks(chunk(fern), "00000\r\n\r\n"),
  }),
  ...expecting("waiting", {
    "a size beyond 32 bits": sized("10000000f"),
    "a size beyond 53 bits": sized("2000000000000f"),
    "no last chunk": chunks(chunk(fern)),
  }),
  ...expecting("400 closed", {
    "a size beyond 64 bits": sized("1000000000000000f", lastChunk + smuggled),
    "a size of sixteen times f": sized("ffffffffffffffff"),
    "a size that is too small by one": sized("e", lastChunk + smuggled),
    "a size that is too large by one": sized("10", lastChunk + smuggled),
    "an extension that holds a bare line feed": sized("f;a\nb"),
    "an extension that holds a bare carriage return": sized("f;a\rb"),
    "an extension that hides a chunk behind a line feed": sized(
      `f;\n${fern}\r\n0\r\n\r\n`,
      lastChunk + smuggled,
    ),
    "a size line that ends with a bare line feed": chunks(`f\n${fern}\r\n${lastChunk}`),
    "data that end with a bare line feed": chunks(`f\r\n${fern}\n${lastChunk}`),
    "data that end with a bare carriage return": chunks(`f\r\n${fern}\r${lastChunk}`),
    "data that end with two other characters": chunks(`f\r\n${fern}XX${lastChunk}`, smuggled),
    "data without an end": chunks(`f\r\n${fern}${lastChunk}`, smuggled),
    "a last chunk that ends with bare line feeds": chunks(chunk(fern), "0\n\n"),
    "a last chunk and a request in place of its empty line": chunks(chunk(fern), "0\r\n", smuggled),
    "a last chunk and two other characters": chunks(chunk(fern), "0\r\nXX", smuggled),
    "a request in place of the last chunk": chunks(chunk(fern), smuggled),
    "a trailer": chunks(chunk(fern), "0\r\nX-Trailer: a\r\n\r\n"),
    "a trailer that names another length": chunks(chunk(fern), "0\r\nContent-Length: 5\r\n\r\n"),
    "a trailer that names a host": chunks(chunk(fern), "0\r\nHost: b\r\n\r\n"),
    "a trailer that is no header": chunks(chunk(fern), "0\r\nno colon\r\n\r\n"),
    "a trailer of 20 KiB": chunks(chunk(fern), `0\r\nX: ${"a".repeat(20 * 1024)}\r\n\r\n`),
  }),
  ["an extension of 20 KiB", sized(`f;${"a".repeat(20 * 1024)}`), "413 closed"],
  ["a last chunk without its empty line", chunks(chunk(fern), "0\r\n"), "201 waiting"],
  ["an empty body in chunks", chunks(lastChunk), "400 open"],
  ...expecting("closed", {
    "a request behind the last chunk": chunks(chunk(fern), lastChunk, post("Content-Length: 0")),
  }),
  ...["0xf", "+f", "-f", "-1", " f", "g", "f g", "f\t", "f ", "", "१", "f\x00", "15.0", "f,f"].map(
    (size): HostileCase => [
      `a size of ${JSON.stringify(size)}`,
      sized(Buffer.from(size).toString("latin1"), lastChunk + smuggled),
      "400 closed",
    ],
  ),
];
