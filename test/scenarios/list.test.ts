/** Lists of many plants, and lists that change while they are read or cached. */
import { describe, expect, test } from "bun:test";
import { waitFor } from "../end-to-end/running-service.ts";
import { engines, openWorld } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  describe("list", () => {
    test.each([1, 7, 499, 500, 501, 1000, 1700, 2000, 2001])(
      "visits every plant exactly once by following the link, %d at a time",
      async (limit) => {
        const ids = Array.from({ length: 1700 }, (_, index) => BigInt(index * 3 - 900));
        const headers = await plantGarden(`walk-${limit}`, ids);
        const visited: number[] = [];
        let target: string | undefined = `/plants?fields=id&limit=${limit}`;
        for (let pages = 0; target; pages++) {
          const response: Response = await world.fetch(`GET ${target}`, { headers });
          const page = (await response.json()) as { id: number }[];
          expect(page.length).toBeLessThanOrEqual(limit);
          visited.push(...page.map(({ id }) => id));
          target = /<(.+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
          if (target && limit >= 1700) throw new Error("There is a link behind a complete list.");
          if (pages > 2_000) throw new Error("The links never end.");
        }
        expect(visited).toEqual(ids.map(Number));
      },
    );

    test("shows every change at once, and one by another process soon, however often it is asked", async () => {
      const headers = await plantGarden("changing", [1n]);
      const listIds = async () => {
        await world.fetch("GET /plants?fields=id&limit=20", { headers });
        return (await world.fetch("GET /plants?fields=id&limit=20", { headers })).text();
      };
      expect(await listIds()).toBe('[{"id":1}]');
      await plantGarden("changing", [2n]);
      expect(await listIds()).toBe('[{"id":1},{"id":2}]');
      await world.fetch("DELETE /plants/1", { headers });
      expect(await listIds()).toBe('[{"id":2}]');
      const other = await world.openAgain();
      await other.apply([{ kind: "delete", garden: "changing", id: 2n }]);
      await other.close();
      await waitFor(async () => (await listIds()) === "[]" || undefined);
    });

    test("shows one moment, up to a limit of 2,000, however slowly it is read", async () => {
      const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(index * 2));
      const headers = await plantGarden("still", ids);
      const response = await world.fetch("GET /plants?fields=id&limit=1400", { headers });
      await plantGarden("still", [2_001n]);
      const page = (await response.json()) as { id: number }[];
      expect(page.map(({ id }) => id)).toEqual(ids.slice(0, 1_400).map(Number));
    });

    test("breaks off rather than exceed the limit when plants come in before the last one", async () => {
      const ids = Array.from({ length: 2_500 }, (_, index) => BigInt(index * 2));
      const headers = await plantGarden("moving", ids);
      const response = await world.fetch("GET /plants?fields=id&limit=2400", { headers });
      const reader = response.body?.getReader();
      await reader?.read();
      await plantGarden("moving", [2_001n]);
      const readRest = async () => {
        while (!(await reader?.read())?.done);
      };
      const failure = await readRest().catch((error) => error);
      expect(failure).toBeInstanceOf(Error);
    });

    async function plantGarden(garden: string, ids: readonly bigint[]): Promise<HeadersInit> {
      await world.storage.apply(
        ids.map((id) => ({
          kind: "create",
          garden,
          id,
          name: `Plant ${id}`,
          tag: "",
          idempotency: undefined,
        })),
      );
      const token = await world.makeToken({ user: "walker", garden });
      return { authorization: `Bearer ${token}` };
    }
  });
});
