/** About the service itself: its contract, its health and its metrics. They need no token. */
import { fileReply } from "../file-reply.ts";
import type { Operation } from "../operation.ts";
import { textReply } from "../reply.ts";

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

export const serviceOperations: readonly Operation[] = [
  {
    name: "readOpenApi",
    method: "GET",
    path: "/openapi.json",
    hasPreflight: true,
    run: async ({ service, request }) =>
      fileReply(await service.loadOpenApi(), { "Cache-Control": "no-cache" }, request.headers),
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
    async run({ service }) {
      await service.checkStorage();
      return textReply("ready\n");
    },
  },
  {
    name: "readMetrics",
    method: "GET",
    path: "/metrics",
    isProbe: true,
    run: async ({ service }) => textReply(await service.renderMetrics(), prometheusText),
  },
];
