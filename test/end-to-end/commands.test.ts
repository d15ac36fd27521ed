/**
 * `plantstore whoami` and the commands for plants, in scripts. Exports and imports are in
 * export-import.test.ts, and what the commands refuse in refusals.test.ts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { openGarden, serveHere } from "../../testing/running-service.ts";

const service = await serveHere();
afterAll(() => service[Symbol.asyncDispose]());

let gardensOpened = 0;

/** `run` runs commands in an empty garden that no other test uses. */
const openNewGarden = () => openGarden(service, { user: `user-${++gardensOpened}` });

type Run = Awaited<ReturnType<typeof openGarden>>["run"];

async function listNames(run: Run): Promise<string[]> {
  const listed = JSON.parse((await run("plants list")).out) as { name: string }[];
  return listed.map(({ name }) => name);
}

/** A command that prints this, exits with 0 and has nothing else to say. */
const success = (out: string) => ({ exitCode: 0, out, errors: "" });

describe("whoami", () => {
  test("shows the token's user, garden, scope and expiry", async () => {
    const { run } = await openGarden(service, {
      user: "whoever",
      garden: "shed",
      scope: "read",
      expiresAtMs: Date.parse("2099-01-01"),
    });

    expect(JSON.parse((await run("whoami")).out)).toEqual({
      user: "whoever",
      garden: "shed",
      scope: "read",
      expiresAt: "2099-01-01T00:00:00.000Z",
      plants: 0,
      lastEvent: 0,
    });
  });

  test("counts the plants that are there, and every change as an event", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern");
    await run("plants add Moss");
    await run("plants edit 1 --tag shade");
    await run("plants get 1 2 8");
    await run("plants rm 2 8");

    const { plants, lastEvent } = JSON.parse((await run("whoami")).out);

    expect(plants).toBe(1);
    expect(lastEvent).toBe(4);
  });
});

test("a token that may only read adds no plant", async () => {
  const { run } = await openGarden(service, { user: "reader", scope: "read" });

  const { exitCode, errors } = await run("plants add Fern");

  expect(exitCode).toBe(4);
  expect(errors).toContain("scope write");
});

describe("plants add", () => {
  test("prints the plant as JSON, with all digits of its id", async () => {
    const { run } = await openNewGarden();

    expect(await run("plants add Fern --tag shade --id 9007199254740993")).toEqual(
      success('{"id":9007199254740993,"name":"Fern","tag":"shade"}\n'),
    );
  });

  test("takes a negative id", async () => {
    const { run } = await openNewGarden();

    expect(await run("plants add Moss --id=-7")).toEqual(
      success('{"id":-7,"name":"Moss","tag":""}\n'),
    );
  });
});

describe("plants list", () => {
  const royalFern = '{"id":1,"name":"Royal fern","tag":"pond"}';
  const ivy = '{"id":2,"name":"Ivy","tag":""}';
  const treeFern = '{"id":3,"name":"Tree fern","tag":"shade"}';
  const moss = '{"id":9007199254740993,"name":"Moss","tag":"shade"}';

  async function openGardenWithFourPlants() {
    const garden = await openNewGarden();
    await garden.run("import -", service.url, [moss, treeFern, ivy, royalFern].join("\n"));
    return garden;
  }

  test("prints a JSON array in the order of ids", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants list")).toEqual(
      success(`[\n${royalFern},\n${ivy},\n${treeFern},\n${moss}\n]\n`),
    );
  });

  test("of an empty garden is an empty array", async () => {
    const { run } = await openNewGarden();

    expect(await run("plants list")).toEqual(success("[]\n"));
  });

  test("has the short name ls", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants ls")).toEqual(await run("plants list"));
  });

  test("--limit prints the first plants", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants list --limit 1")).toEqual(success(`[\n${royalFern}\n]\n`));
  });

  test("--newest --limit prints the last plants", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants list --newest --limit 1")).toEqual(success(`[\n${moss}\n]\n`));
  });

  test("--tag prints the plants with a tag", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants list --tag shade")).toEqual(success(`[\n${treeFern},\n${moss}\n]\n`));
  });

  test("--search finds words in any case, and --newest turns the order around", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants list --search FERN --newest")).toEqual(
      success(`[\n${treeFern},\n${royalFern}\n]\n`),
    );
  });
});

test("plants tags counts the plants of each tag", async () => {
  const { run } = await openNewGarden();
  await run("plants add Fern --tag pond");
  await run("plants add Ivy");
  await run("plants add Rose --tag shade");
  await run("plants add Moss --tag shade");

  expect(await run("plants tags")).toEqual(
    success('[{"tag":"","plants":1},{"tag":"pond","plants":1},{"tag":"shade","plants":2}]\n'),
  );
});

describe("plants get", () => {
  test("prints plants in the order asked for, and names each that is missing", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern --tag shade --id 9007199254740993");
    await run("plants add Moss --id=-7");

    expect(await run("plants get 9007199254740993 8 -- -7")).toEqual({
      exitCode: 3,
      out:
        '{"id":9007199254740993,"name":"Fern","tag":"shade"}\n' +
        '{"id":-7,"name":"Moss","tag":""}\n',
      errors: "plantstore: There is no plant 8. See plantstore plants list.\n",
    });
  });
});

describe("plants edit", () => {
  test("--name and --tag change both", async () => {
    const { run } = await openNewGarden();
    await run("plants add Moss --id=-7");

    expect(await run("plants edit --name Ivy --tag hall -- -7")).toEqual(
      success('{"id":-7,"name":"Ivy","tag":"hall"}\n'),
    );
  });

  test("--name alone keeps the tag", async () => {
    const { run } = await openNewGarden();
    await run("plants add Ivy --tag hall --id=-7");

    expect(await run("plants edit --name Sage -- -7")).toEqual(
      success('{"id":-7,"name":"Sage","tag":"hall"}\n'),
    );
  });

  test("an empty --tag removes the tag, and keeps the name", async () => {
    const { run } = await openNewGarden();
    await run("plants add Sage --tag hall --id=-7");

    expect(await run("plants edit --tag= -- -7")).toEqual(
      success('{"id":-7,"name":"Sage","tag":""}\n'),
    );
  });

  test("gives many plants a tag, and names each that is missing", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern");
    await run("plants add Moss");

    expect(await run("plants edit 1 8 2 9 --tag hall")).toEqual({
      exitCode: 3,
      out: '{"id":1,"name":"Fern","tag":"hall"}\n{"id":2,"name":"Moss","tag":"hall"}\n',
      errors:
        "plantstore: There is no plant 8. See plantstore plants list.\n" +
        "plantstore: There is no plant 9. See plantstore plants list.\n",
    });
  });

  test("refuses one name for several plants, and changes none of them", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern --tag hall");
    await run("plants add Moss --tag hall");

    expect(await run("plants edit 1 2 --name Ivy --tag pond")).toEqual({
      exitCode: 2,
      out: "",
      errors: "plantstore: --name is for one plant. Several plants can get the same --tag.\n",
    });
    expect(await run("plants list --tag hall")).toEqual(
      success('[\n{"id":1,"name":"Fern","tag":"hall"},\n{"id":2,"name":"Moss","tag":"hall"}\n]\n'),
    );
  });
});

describe("plants delete", () => {
  async function openGardenWithFourPlants() {
    const garden = await openNewGarden();
    const plants = "id,name,tag\n1,Royal fern,pond\n2,Ivy,\n3,Tree fern,shade\n4,Moss,shade\n";
    await garden.run("import - --format csv", service.url, plants);
    return garden;
  }

  test("has the short name rm, confirms each plant, and names each that is missing", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern --id 9007199254740993");
    await run("plants add Moss --id=-7");

    expect(await run("plants rm 9007199254740993 8 -- -7")).toEqual({
      exitCode: 3,
      out: '{"id":9007199254740993,"confirmed":true}\n{"id":-7,"confirmed":true}\n',
      errors: "plantstore: There is no plant 8. See plantstore plants list.\n",
    });
    expect(await listNames(run)).toEqual([]);
  });

  test("by tag deletes nothing in a script without --yes", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants delete --tag shade")).toEqual({
      exitCode: 2,
      out: "",
      errors:
        'plantstore: Nothing was deleted. To delete 2 plants with the tag "shade" without being ' +
        "asked, add --yes.\n",
    });
    expect(await listNames(run)).toEqual(["Royal fern", "Ivy", "Tree fern", "Moss"]);
  });

  test("by tag and words deletes only the plants that have both", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants delete --tag shade --search moss --yes")).toEqual(
      success('{"deleted":1,"missing":0}\n'),
    );
    expect(await listNames(run)).toEqual(["Royal fern", "Ivy", "Tree fern"]);
  });

  test("by words deletes the plants that have them", async () => {
    const { run } = await openGardenWithFourPlants();

    expect(await run("plants delete --search fern --yes")).toEqual(
      success('{"deleted":2,"missing":0}\n'),
    );
    expect(await listNames(run)).toEqual(["Ivy", "Moss"]);
  });

  test("needs no --yes if there is nothing to delete", async () => {
    const { run } = await openNewGarden();

    expect(await run("plants delete --search fern")).toEqual(
      success('{"deleted":0,"missing":0}\n'),
    );
  });
});
