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
    fetch: (target, init) => service.fetch(`${init.method} ${target.slice(url.length - 1)}`, init),
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

/** What a message says. */
export function toText(message: unknown): string {
  if (Array.isArray(message)) return message.map(toText).join("");
  const { props } = Object(message) as { props?: { children: unknown } };
  if (props) return toText(props.children);
  return String(message ?? "");
}

/** Waits until something is true of signals or requests, without a bound of its own. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
}
