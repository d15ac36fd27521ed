/** The console's state without a browser, on the real service without its socket. */
import type { PlantDraft } from "../client/plant-store.ts";
import { Api } from "../console/api.ts";
import { Garden } from "../console/garden.ts";
import { forgetUndo } from "../console/message.ts";
import type { SortedQuery } from "../console/order.ts";
import { describeList } from "../console/words.ts";
import type { NewToken } from "../src/auth/opaque-token.ts";
import { toText } from "../testing/message-text.ts";
import { waitFor } from "../testing/running-service.ts";
import { create } from "../testing/tested-storage.ts";
import { openService } from "./contract/garden.ts";

export const url = "http://plants.test/";

type NewPlant = Pick<PlantDraft, "name" | "tag">;

let gardens = 0;

export function openState() {
  const service = openService("SQLite");
  /** Sends the requests of a client to the service. */
  const fetch = (target: string, init: RequestInit) =>
    service.fetch(`${init.method} ${target.slice(url.length - 1)}`, init);

  /** Stores plants with the ids 1, 2 and so on in a garden. Returns a token that opens it. */
  async function makeGarden(
    plants: readonly NewPlant[],
    grant: Partial<NewToken> = {},
  ): Promise<string> {
    const user = `user-${++gardens}`;
    const { garden = user } = grant;
    const writes = plants.map(({ name, tag = "" }, index) =>
      create({ garden, id: BigInt(index + 1), name, tag }),
    );
    await service.storage.apply(writes);
    return service.makeToken({ user, ...grant, garden });
  }

  /** Makes a garden with these plants and opens it as the page does. */
  async function openGarden(plants: readonly NewPlant[], query: SortedQuery = {}) {
    const api = new Api({ url, token: await makeGarden(plants), fetch });
    const garden = new Garden(api);
    const { list } = garden;
    forgetUndo();
    garden.show(query);
    await until(() => list.value.isLoaded || list.value.error.value !== undefined);
    return {
      api,
      garden,
      /** Shows another list, and waits for its first plants. */
      async show(newQuery: SortedQuery): Promise<void> {
        garden.show(newQuery);
        await until(() => !garden.isComing.value);
      },
      /** What the page says beside the title. */
      note: () => toText(describeList(list.value, garden.summary.value)),
      shownNames: () => list.value.plants.map(({ name }) => name),
      /** What the service has, by id. */
      async stored() {
        const { plants: found } = await api.page();
        return found.map(({ name, tag }) => ({ name, tag }));
      },
    };
  }

  return { service, fetch, makeGarden, openGarden };
}

/** Waits until something is true of signals or requests. */
export async function until(isTrue: () => boolean): Promise<void> {
  await waitFor(() => isTrue() || undefined);
}
