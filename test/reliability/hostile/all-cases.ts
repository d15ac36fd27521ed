/** The contents page: every hostile case, by topic. */
import { chunkCases } from "./chunk-cases.ts";
import { connectionCases } from "./connection-cases.ts";
import { headerCases } from "./header-cases.ts";
import type { HostileCase } from "./hostile-case.ts";
import { lengthCases } from "./length-cases.ts";
import { lineCases } from "./line-cases.ts";
import { requestLineCases } from "./request-line-cases.ts";
import { sizeCases } from "./size-cases.ts";

export const allCases: Readonly<Record<string, readonly HostileCase[]>> = {
  "lengths and encodings": lengthCases,
  chunks: chunkCases,
  "lines of the head": lineCases,
  "methods, versions and targets": requestLineCases,
  "hosts, tokens, expectations and connections": headerCases,
  sizes: sizeCases,
  "requests in a row, and early ends": connectionCases,
};
