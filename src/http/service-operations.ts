/** The operations about the service itself, which need no token: its document, health, metrics. */
import type { Operation } from "./operation.ts";
import { type EntityTags, ifNoneMatch } from "./parameters.ts";
import { jsonReply, matchesTag, textReply } from "./response.ts";

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

export const serviceOperations: readonly Operation[] = [
  {
    name: "readOpenApi",
    method: "GET",
    path: "/openapi.json",
    parameters: { "If-None-Match": ifNoneMatch("document") },
    async run({ renderOpenApi }, { parameters }) {
      const text = await renderOpenApi();
      const headers = { ETag: `"${Bun.hash(text).toString(36)}"`, "Cache-Control": "no-cache" };
      const known = parameters["If-None-Match"] as EntityTags | undefined;
      if (known && matchesTag(known, headers.ETag, "weak")) return { status: 304, headers };
      return jsonReply(200, text, headers);
    },
  },
  {
    name: "checkHealth",
    method: "GET",
    path: "/healthz",
    isProbe: true,
    run: async () => textReply("ok\n"),
  },
  {
    name: "checkReadiness",
    method: "GET",
    path: "/readyz",
    isProbe: true,
    async run({ checkStorage }) {
      await checkStorage();
      return textReply("ready\n");
    },
  },
  {
    name: "readMetrics",
    method: "GET",
    path: "/metrics",
    isProbe: true,
    run: async ({ renderMetrics }) => textReply(await renderMetrics(), prometheusText),
  },
];
