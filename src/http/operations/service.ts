/** About the service itself: its contract, its health and its metrics. They need no token. */
import type { Operation } from "../operation.ts";
import { jsonReply, textReply } from "../reply.ts";

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

export const serviceOperations: readonly Operation[] = [
  {
    name: "readOpenApi",
    method: "GET",
    path: "/openapi.json",
    run: async ({ service }) =>
      jsonReply(200, await service.renderOpenApi(), { "Cache-Control": "no-cache" }),
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
