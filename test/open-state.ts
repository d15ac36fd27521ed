/** The console's state without a browser, on the real service without its socket. */
import type { NewToken } from "../src/auth/opaque-token.ts";
import { openService, type TestService } from "./contract/garden.ts";
import { create } from "./storage/tested-storage.ts";

export const url = "http://plants.test/";

export interface OpenState {
  readonly service: TestService;
  /** Sends the requests of a client to the service. */
  readonly fetch: (target: string, init: RequestInit) => Promise<Response>;
  /** A token to a garden that has these plants. */
  makeGarden(names: readonly string[], token?: Partial<NewToken>): Promise<string>;
}

let gardens = 0;

export function openState(): OpenState {
  const service = openService("SQLite");
  return {
    service,
    fetch: (target, init) => {
      const call = (request: string, more: RequestInit) =>
        service.fetch(request, { ...init, ...more });
      if (target.endsWith("/bulk-update")) return updateMany(call, String(init.body));
      return call(`${init.method} ${target.slice(url.length - 1)}`, {});
    },
    async makeGarden(names, token = {}) {
      const user = `user-${++gardens}`;
      const { garden = user } = token;
      const writes = names.map((text, index) => {
        const [name = "", tag = ""] = text.split(":");
        return create({ garden, id: BigInt(index + 1), name, tag });
      });
      await service.storage.apply(writes);
      return service.makeToken({ user, ...token, garden });
    },
  };
}

/** As `POST /plants/bulk-update` will do it. */
export async function updateMany(
  call: (request: string, more: RequestInit) => Promise<Response>,
  text: string,
): Promise<Response> {
  const { ids, set } = JSON.parse(text);
  const missing: number[] = [];
  for (const id of ids) {
    const found = await call(`GET /plants/${id}`, { method: "GET", body: null });
    const body = JSON.stringify({ ...(await found.json()), ...set });
    if (found.status === 200) await call(`PUT /plants/${id}`, { method: "PUT", body });
    else missing.push(id);
  }
  return Response.json({ updated: ids.length - missing.length, missing });
}

/** Waits until something is true of signals or requests, without a bound of its own. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
}
