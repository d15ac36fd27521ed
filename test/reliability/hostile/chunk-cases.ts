/** Chunks: their sizes, extensions, ends and trailers. */
import {
  chunk,
  chunked,
  fern,
  type HostileCase,
  lastChunk,
  pause,
  post,
  type Step,
  smuggled,
} from "./hostile-case.ts";

function chunks(...text: readonly string[]): string {
  return post(chunked) + text.join("");
}

/** A body of one chunk under a size line of any kind. */
function sized(size: string, rest = lastChunk): string {
  return chunks(`${size}\r\n${fern}\r\n${rest}`);
}

export const chunkCases: readonly HostileCase[] = [
  ["one chunk", chunks(chunk(fern), lastChunk), "201 open"],
  ["a chunk for every byte", chunks(...Array.from(fern, chunk), lastChunk), "201 open"],
  [
    "a packet for every byte",
    [
      post(chunked),
      ...Array.from(chunk(fern) + lastChunk).flatMap((byte): Step[] => [pause, byte]),
    ],
    "201 open",
  ],
  ["a size in capitals", sized("F"), "201 open"],
  ["a size with zeros before it", sized("000f"), "201 open"],
  ["a size with many zeros before it", sized(`${"0".repeat(40)}f`), "201 open"],
  ...["0xf", "+f", "-f", "-1", " f", "g", "f g", "f\t", "f ", "", "१", "f\x00", "15.0", "f,f"].map(
    (size): HostileCase => [
      `a size of ${JSON.stringify(size)}`,
      sized(Buffer.from(size).toString("latin1"), lastChunk + smuggled),
      "400 closed",
    ],
  ),
  ["a size beyond 32 bits", sized("10000000f"), "waiting"],
  ["a size beyond 53 bits", sized("2000000000000f"), "waiting"],
  ["a size beyond 64 bits", sized("1000000000000000f", lastChunk + smuggled), "400 closed"],
  ["a size of sixteen times f", sized("ffffffffffffffff"), "400 closed"],
  ["a size that is too small by one", sized("e", lastChunk + smuggled), "400 closed"],
  ["a size that is too large by one", sized("10", lastChunk + smuggled), "400 closed"],
  ["an extension", sized("f;a=b"), "201 open"],
  ["an extension without a value", sized("f;a"), "201 open"],
  ["an extension in quotes", sized('f;a="b"'), "201 open"],
  ["a bare semicolon", sized("f;"), "201 open"],
  ["an extension that holds a bare line feed", sized("f;a\nb"), "400 closed"],
  ["an extension that holds a bare carriage return", sized("f;a\rb"), "400 closed"],
  [
    "an extension that hides a chunk behind a line feed",
    sized(`f;\n${fern}\r\n0\r\n\r\n`, lastChunk + smuggled),
    "400 closed",
  ],
  ["an extension of 20 KiB", sized(`f;${"a".repeat(20 * 1024)}`), "413 closed"],
  [
    "extensions on a thousand chunks",
    chunks(
      ...Array.from(fern.padEnd(1_000), (byte) => `1;${"a".repeat(60)}\r\n${byte}\r\n`),
      lastChunk,
    ),
    "201 open",
  ],
  [
    "a size line that ends with a bare line feed",
    chunks(`f\n${fern}\r\n${lastChunk}`),
    "400 closed",
  ],
  ["data that end with a bare line feed", chunks(`f\r\n${fern}\n${lastChunk}`), "400 closed"],
  ["data that end with a bare carriage return", chunks(`f\r\n${fern}\r${lastChunk}`), "400 closed"],
  [
    "data that end with two other characters",
    chunks(`f\r\n${fern}XX${lastChunk}`, smuggled),
    "400 closed",
  ],
  ["data without an end", chunks(`f\r\n${fern}${lastChunk}`, smuggled), "400 closed"],
  ["a last chunk that ends with bare line feeds", chunks(chunk(fern), "0\n\n"), "400 closed"],
  ["a last chunk without its empty line", chunks(chunk(fern), "0\r\n"), "201 waiting"],
  [
    "a last chunk and a request in place of its empty line",
    chunks(chunk(fern), "0\r\n", smuggled),
    "400 closed",
  ],
  ["a last chunk and two other characters", chunks(chunk(fern), "0\r\nXX", smuggled), "400 closed"],
  ["a last chunk of many zeros", chunks(chunk(fern), "00000\r\n\r\n"), "201 open"],
  ["no last chunk", chunks(chunk(fern)), "waiting"],
  ["a request in place of the last chunk", chunks(chunk(fern), smuggled), "400 closed"],
  ["an empty body in chunks", chunks(lastChunk), "400 open"],
  ["a trailer", chunks(chunk(fern), "0\r\nX-Trailer: a\r\n\r\n"), "400 closed"],
  [
    "a trailer that names another length",
    chunks(chunk(fern), "0\r\nContent-Length: 5\r\n\r\n"),
    "400 closed",
  ],
  ["a trailer that names a host", chunks(chunk(fern), "0\r\nHost: b\r\n\r\n"), "400 closed"],
  ["a trailer that is no header", chunks(chunk(fern), "0\r\nno colon\r\n\r\n"), "400 closed"],
  [
    "a trailer of 20 KiB",
    chunks(chunk(fern), `0\r\nX: ${"a".repeat(20 * 1024)}\r\n\r\n`),
    "400 closed",
  ],
  [
    "a request behind the last chunk",
    chunks(chunk(fern), lastChunk, post("Content-Length: 0")),
    "closed",
  ],
];
