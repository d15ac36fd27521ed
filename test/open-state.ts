/** The console's state without a browser, on the real service without its socket. */
import { Api } from "../console/api.ts";
import { Garden } from "../console/garden.ts";
import { forgetUndo } from "../console/message.ts";
import { describeList } from "../console/words.ts";
import type { NewToken } from "../src/auth/opaque-token.ts";
import { toText } from "../testing/message-text.ts";
import { waitFor } from "../testing/running-service.ts";
import { create } from "../testing/tested-storage.ts";
import { openService } from "./contract/garden.ts";

export const url = "http://plants.test/";

let gardens = 0;

export function openState() {
  const service = openService("SQLite");
  /** Sends the requests of a client to the service. */
  const fetch = (target: string, init: RequestInit) =>
    service.fetch(`${init.method} ${target.slice(url.length - 1)}`, init);

  /** A token to a garden that has these plants, such as `Fern:shade`. */
  async function makeGarden(plants: readonly string[], token: Partial<NewToken> = {}) {
    const user = `user-${++gardens}`;
    const { garden = user } = token;
    const writes = plants.map((text, index) => {
      const [name = "", tag = ""] = text.split(":");
      return create({ garden, id: BigInt(index + 1), name, tag });
    });
    await service.storage.apply(writes);
    return service.makeToken({ user, ...token, garden });
  }

  /** The page's own garden, with the first plants of a list. */
  async function openGarden(plants: readonly string[], query = {}) {
    const api = new Api({ url, token: await makeGarden(plants), fetch });
    const garden = new Garden(api);
    const { list } = garden;
    forgetUndo();
    garden.show(query);
    await until(() => list.value.isLoaded || list.value.error.value !== undefined);
    return {
      api,
      garden,
      /** What the page says beside the title. */
      note: () => toText(describeList(list.value, garden.summary.value)),
      shown: () => list.value.plants.map(({ name }) => name),
      stored: async () => (await api.page()).plants.map(({ name, tag }) => `${name}:${tag}`),
    };
  }

  return { service, fetch, makeGarden, openGarden };
}

/** Waits until something is true of signals or requests. */
export async function until(isTrue: () => boolean): Promise<void> {
  await waitFor(() => isTrue() || undefined);
}
