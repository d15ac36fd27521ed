/** Lengths that lie, contradict each other, or could be read in two ways: the root of smuggling. */
import {
  chunk,
  chunked,
  create,
  fern,
  get,
  type HostileCase,
  lastChunk,
  post,
  smuggled,
} from "./hostile-case.ts";

/** Whoever goes by the length sees one request, and whoever goes by the chunks sees two. */
const hiddenBehindChunks = lastChunk + smuggled;
const wholeInChunks = chunk(fern) + lastChunk;

function length(value: string | number): string {
  return `Content-Length: ${value}`;
}

export const lengthCases: readonly HostileCase[] = [
  // A length and chunks.
  [
    "a length that covers a request behind the last chunk (CL.TE)",
    post(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "the same with the chunks named first",
    post(chunked, length(hiddenBehindChunks.length)) + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "a length that ends within the chunks (TE.CL)",
    post(length(4), chunked) + chunk(smuggled) + lastChunk,
    "400 closed",
  ],
  ["a length of 0 and chunks", post(length(0), chunked) + wholeInChunks, "400 closed"],
  [
    "a length and chunks that agree",
    post(length(wholeInChunks.length), chunked) + wholeInChunks,
    "400 closed",
  ],
  [
    "a length and chunks on a GET",
    get(length(hiddenBehindChunks.length), chunked) + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "a length and an encoding that is identity",
    post(length(fern.length), "Transfer-Encoding: identity") + fern,
    "400 closed",
  ],
  [
    "a length and an empty Transfer-Encoding",
    post(length(fern.length), "Transfer-Encoding:") + fern,
    "400 closed",
  ],
  [
    "a length and an encoding that is unknown",
    post(length(fern.length), "Transfer-Encoding: cow") + fern,
    "400 closed",
  ],
  // Transfer-Encoding in disguise.
  ["Transfer-Encoding twice, chunked", post(chunked, chunked) + wholeInChunks, "400 closed"],
  [
    "Transfer-Encoding twice, chunked and identity",
    post(chunked, "Transfer-Encoding: identity") + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "Transfer-Encoding twice, identity and chunked",
    post("Transfer-Encoding: identity", chunked) + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "Transfer-Encoding twice, one of them unknown (TE.TE)",
    post(chunked, "Transfer-Encoding: cow") + hiddenBehindChunks,
    "400 closed",
  ],
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
  ["chunked in capitals", post("TRANSFER-ENCODING: CHUNKED") + wholeInChunks, "201 open"],
  ["chunked behind a tab", post("Transfer-Encoding:\tchunked") + wholeInChunks, "201 open"],
  ["chunked before spaces", post("Transfer-Encoding: chunked  \t") + wholeInChunks, "201 open"],
  [
    "a space before the colon of Transfer-Encoding",
    post("Transfer-Encoding : chunked") + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "a tab before the colon of Transfer-Encoding",
    post("Transfer-Encoding\t: chunked") + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "Transfer-Encoding with an underscore",
    post("Transfer_Encoding: chunked", length(hiddenBehindChunks.length)) + hiddenBehindChunks,
    "400 open",
  ],
  [
    "Transfer-Encoding folded onto a second line",
    post("Transfer-Encoding:\r\n chunked") + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "Transfer-Encoding behind a bare line feed",
    post("X: y\nTransfer-Encoding: chunked") + hiddenBehindChunks,
    "400 closed",
  ],
  [
    "Transfer-Encoding behind a bare carriage return",
    post("X: y\rTransfer-Encoding: chunked", length(fern.length)) + fern,
    "400 closed",
  ],
  ["chunks in HTTP/1.0", post(chunked).replace("/1.1", "/1.0") + wholeInChunks, "400 closed"],
  // Content-Length.
  ["a length that is right", create(fern), "201 open"],
  ["the same length twice", create(fern, length(fern.length)) + smuggled, "400 closed"],
  ["two lengths, the first shorter", post(length(0), length(15)) + fern, "400 closed"],
  ["two lengths, the second shorter", post(length(15), length(0)) + fern, "400 closed"],
  ["two lengths on a GET", get(length(smuggled.length), length(0)) + smuggled, "400 closed"],
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
  ["a length beyond 32 bits", post(length("4294967311")) + fern, "413 closed"],
  ["a length with zeros before it", post(length("00015")) + fern, "201 open"],
  ["a length behind a tab", post("Content-Length:\t15") + fern, "201 open"],
  ["a space before the colon of Content-Length", post("Content-Length : 15") + fern, "400 closed"],
  [
    "a request where a body should be, on a GET",
    get(length(smuggled.length)) + smuggled,
    "400 open",
  ],
  ["a length of 0 on a GET", get(length(0)), "200 open"],
  ["a GET whose chunks hold a request", get(chunked) + chunk(smuggled) + lastChunk, "400 closed"],
  ["a GET with the last chunk only", get(chunked) + lastChunk, "400 closed"],
  ["neither length nor chunks", post(), "400 open"],
];
