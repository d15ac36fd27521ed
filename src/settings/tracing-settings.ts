/** The settings of traces. They are off while no collector is named. */
import { PlantStoreError } from "../domain/errors.ts";
import type { Setting } from "./setting.ts";

export interface TracingSettings {
  readonly traceEndpoint: string;
  readonly traceHeaders: Readonly<Record<string, string>>;
  readonly traceRatio: number;
}

export const tracingSettings: {
  readonly [Name in keyof TracingSettings]: Setting<TracingSettings[Name]>;
} = {
  traceEndpoint: {
    flag: "trace-endpoint",
    environment: "PLANTSTORE_TRACE_ENDPOINT",
    placeholder: "URL",
    fallback: "",
    help: "the OpenTelemetry collector that gets traces (OTLP over HTTP)",
    parse: (text) =>
      text === "" || (/^https?:\/\/[^?#\s]+$/.test(text) && URL.canParse(text)) ? text : undefined,
    expected: "an address such as http://127.0.0.1:4318",
  },
  traceHeaders: {
    flag: "trace-headers",
    environment: "PLANTSTORE_TRACE_HEADERS",
    placeholder: "LIST",
    fallback: "",
    help: "headers for the collector, as name=value, by commas",
    parse: parseHeaders,
    expected: "headers such as api-key=secret, separated by commas",
    isSecret: true,
  },
  traceRatio: {
    flag: "trace-ratio",
    environment: "PLANTSTORE_TRACE_RATIO",
    placeholder: "NUMBER",
    fallback: "1",
    help: "which part of the traces that begin here is recorded",
    parse: (text) => (/^(?:0?\.\d{1,9}|0|1(?:\.0{1,9})?)$/.test(text) ? Number(text) : undefined),
    expected: "a number from 0 to 1",
  },
};

export interface Tracing {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ratio: number;
}

type Read = <Name extends keyof TracingSettings>(name: Name) => TracingSettings[Name];

/** Absent: no traces. */
export function readTracing(read: Read): Tracing | undefined {
  const endpoint = read("traceEndpoint");
  const headers = read("traceHeaders");
  const ratio = read("traceRatio");
  if (endpoint !== "") return { endpoint, headers, ratio };
  const isInVain = {
    "--trace-headers": Object.keys(headers).length > 0,
    "--trace-ratio": ratio < 1,
  };
  for (const [flag, isSet] of Object.entries(isInVain)) {
    if (isSet) throw new PlantStoreError("invalid-request", `${flag} needs --trace-endpoint.`);
  }
  return undefined;
}

function parseHeaders(text: string): Record<string, string> | undefined {
  if (text === "") return {};
  const pairs = text.split(",").map((pair) => /^\s*([\w-]+)=([\x21-\x7e ]+?)\s*$/.exec(pair));
  const isWhole = pairs.every((pair) => pair !== null);
  return isWhole ? Object.fromEntries(pairs.map((pair) => pair.slice(1))) : undefined;
}
