/** The operations about the service itself, which need no token: its document, health, metrics. */
import type { DocumentedOperation, Success } from "./operation.ts";
import { type EntityTags, entityTagHeader, ifNoneMatch } from "./parameters.ts";
import { jsonReply, matchesTag, plainText, textReply } from "./response.ts";

const readOpenApi: DocumentedOperation = {
  name: "readOpenApi",
  method: "GET",
  path: "/openapi.json",
  summary: "This document",
  description: "The OpenAPI description of the service.",
  parameters: {
    "If-None-Match": ifNoneMatch("document"),
  },
  success: {
    status: 200,
    description: "An OpenAPI 3.1 document.",
    headers: { ETag: entityTagHeader },
    contentType: "application/json",
    schema: "Document",
  },
  otherSuccess: {
    status: 304,
    description: "The document is as `If-None-Match` knows it.",
    headers: { ETag: entityTagHeader },
  },
  async run({ renderOpenApi }, { parameters }) {
    const text = await renderOpenApi();
    const headers = { ETag: `"${Bun.hash(text).toString(36)}"`, "Cache-Control": "no-cache" };
    const known = parameters["If-None-Match"] as EntityTags | undefined;
    if (known && matchesTag(known, headers.ETag, "weak")) return { status: 304, headers };
    return jsonReply(200, text, headers);
  },
};

const checkHealth: DocumentedOperation = {
  name: "checkHealth",
  method: "GET",
  path: "/healthz",
  isProbe: true,
  summary: "Alive",
  description: "Responds while the process is alive.",
  success: textSuccess("The process is alive.", { alive: { value: "ok\n" } }),
  run: async () => textReply("ok\n"),
};

const checkReadiness: DocumentedOperation = {
  name: "checkReadiness",
  method: "GET",
  path: "/readyz",
  isProbe: true,
  summary: "Ready",
  description: "200 while the storage responds and accepts writes, otherwise 503.",
  success: textSuccess("Requests can be served.", { ready: { value: "ready\n" } }),
  problems: ["unavailable"],
  async run({ checkStorage }) {
    await checkStorage();
    return textReply("ready\n");
  },
};

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

const readMetrics: DocumentedOperation = {
  name: "readMetrics",
  method: "GET",
  path: "/metrics",
  isProbe: true,
  summary: "Metrics",
  description: "Counters, gauges and histograms in the Prometheus text format.",
  success: {
    ...textSuccess("The metrics.", { some: { value: "plantstore_commits_total 42\n" } }),
    contentType: prometheusText,
  },
  run: async ({ renderMetrics }) => textReply(await renderMetrics(), prometheusText),
};

function textSuccess(description: string, examples: Record<string, unknown>): Success {
  return { status: 200, description, contentType: plainText, schema: "Text", examples };
}

export const serviceOperations: readonly DocumentedOperation[] = [
  readOpenApi,
  checkHealth,
  checkReadiness,
  readMetrics,
];
