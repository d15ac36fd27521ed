/** Long work has a turn of the event loop each, and no more of it waits than may. */
import { expect, test } from "bun:test";
import { OneATurn } from "./one-a-turn.ts";

test("each piece has a turn of its own", async () => {
  const turns = new OneATurn(9);
  let turn = 0;
  let isDone = false;
  setImmediate(function count() {
    turn++;
    if (!isDone) setImmediate(count);
  });
  const work = Array.from({ length: 3 }, async () => {
    await turns.enter();
    return turn;
  });
  const [first = 0, second, third] = await Promise.all(work);
  isDone = true;
  expect([second, third]).toEqual([first + 1, first + 2]);
});

test("what comes when too many wait is refused, and what comes later is not", async () => {
  const turns = new OneATurn(2);
  const waiting = [turns.enter(), turns.enter()];
  await expect(turns.enter()).rejects.toMatchObject({ code: "unavailable" });
  await Promise.all(waiting);
  await turns.enter();
});
