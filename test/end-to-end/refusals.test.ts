/**
 * Command lines with mistakes, and commands that cannot do their work at a service: refused in one
 * line that says why. `expectRefusal` also checks that no file appears or changes, that no secret is
 * printed, and that nothing goes to standard output. Stores that cannot be used are in refused-stores.test.ts, and settings that
 * make no sense in src/shared/config.test.ts.
 */
import { afterAll, describe, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { serverPassword } from "../../testing/postgres-server.ts";
import { serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { expectRefusal, type Refusal } from "./expect-refusal.ts";

const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const service = await serveHere();
await service.call("POST /plants", { body: '{"name":"Rose","id":7}' });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const environment = {
  PLANTSTORE_URL: service.url,
  PLANTSTORE_TOKEN: service.token,
  PLANTSTORE_DATABASE: inFolder("new.db"),
  PLANTSTORE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
};

/** Runs a command with the service's URL and token, unless `changedEnvironment` says otherwise. */
const expectRefused = (refusal: Refusal, changedEnvironment: Record<string, string> = {}) =>
  expectRefusal(refusal, {
    folder: folder.path,
    env: { ...environment, ...changedEnvironment },
  });

describe("a mistake on the command line is refused with exit code 2, and explained:", () => {
  test.each([
    ["grow", 'There is no command "grow". See plantstore --help.'],
    ["srve", "Did you mean serve?"],
    ["token crate alice", "Did you mean token create?"],
    ["--port 1 serve", "The command comes first"],

    ["serve --prot 1", "Did you mean --port?"],
    ["serve --color red", "There is no flag --color. "],
    ["plants list -x --tag", "There is no flag -x."],
    ["serve --port", "--port needs a value. See plantstore serve --help."],
    ["plants list --limit --json", "--limit needs a value."],
    ["plants list --limit -1", "--limit needs a value. If that is -1, write --limit=-1."],
    ["plants list --limit many", '"many"'],
    ["plants list --json=yes", "--json takes no value."],
    ["plants list --search=", "--search needs a word"],
    ["plants get -7", "Put -- before a word"],

    ["plants add royal fern", '"fern" is unexpected. Put several words'],
    ["plants edit 7", "Nothing to change."],
    ["plants edit 7 --name=", "name must"],
    ["plants edit 7 --tag", "--tag needs a value. See plantstore plants edit --help."],
    ["plants delete", "Which plants?"],
    ["plants delete 007", '"007"'],
    ["plants delete 7 --tag x", "not both"],
    ["events --since yesterday", "--since must be a time such as 30m, 2h or 7d"],

    ["token create", "USER is missing. Usage: plantstore token create USER [flags]"],
    ["token create ", "USER must be"],
    ["token create a --scope admin", "--scope must be"],
    ["token revoke plant_secret", "not the token itself"],
  ])("plantstore %s", (command, reason) => expectRefused({ command, exitCode: 2, reason }));

  test("export to a file of an unknown format", () =>
    expectRefused({
      command: `export ${inFolder("plants.xlsx")}`,
      exitCode: 2,
      reason: "There is no export format .xlsx. Use .csv",
    }));
});

describe("a token can't expire", () => {
  test.each([
    ["at a time that isn't one", "soon"],
    ["at once", "0d"],
    ["on a day that isn't in the calendar", "2131-02-30"],
    ["in the past", "2001-01-01"],
    ["at a time without a zone", "2131-01-01T12:00:00"],
  ])("%s: %s", (_, expiry) =>
    expectRefused({
      command: `token create a --expires ${expiry}`,
      exitCode: 2,
      reason: "--expires must be",
    }),
  );
});

describe("a command that calls a service", () => {
  test("needs a token, and exits with 4 without one", () =>
    expectRefused(
      { command: "plants list", exitCode: 4, reason: "Set PLANTSTORE_TOKEN" },
      { PLANTSTORE_TOKEN: "" },
    ));

  test("exits with 4 if its token isn't known, and says how to make one", () =>
    expectRefused(
      { command: "plants list", exitCode: 4, reason: "token create USER --database FILE" },
      { PLANTSTORE_TOKEN: "somebody" },
    ));

  test("exits with 6 if no service listens at the address", () =>
    expectRefused({
      command: "export --url http://127.0.0.1:1",
      exitCode: 6,
      reason: "refused. Is the service running?",
    }));

  test("exits with 6 if it uses https with a service that doesn't, and names the right URL", () =>
    expectRefused({
      command: `plants list --url https://127.0.0.1:${service.port}`,
      exitCode: 6,
      reason: `Is it ${service.url}?`,
    }));

  test("exits with 1 if its URL has a path that isn't the service's", () =>
    expectRefused({
      command: `plants list --url ${service.url}/plants`,
      exitCode: 1,
      reason: "Check its address.",
    }));

  // What it asks for there, a plant with the id "readyz", needs a token.
  test("exits with 6 if it is health, and its URL has a path that isn't the service's", () =>
    expectRefused({
      command: `health --url ${service.url}/plants`,
      exitCode: 6,
      reason: "(status 401). Check its address.",
    }));

  test("exits with 5 if it adds a plant with an id that another plant has", () =>
    expectRefused({
      command: "plants add Fern --id 7",
      exitCode: 5,
      reason: "A plant with the id 7 already exists. Choose another id",
    }));

  test("exits with 1 if it can't read the file to import", () =>
    expectRefused({
      command: "import /dev/null/plants.csv",
      exitCode: 1,
      reason: "/dev/null/plants.csv",
    }));

  test("exits with 1 if it asks for events after one that never happened", () =>
    expectRefused({
      command: "events --after 12345",
      exitCode: 1,
      reason: "Run it again without --after to see the events",
    }));
});

describe("events --forward is refused", () => {
  const hook = "https://example.com/hook";
  const newState = inFolder("new.state");

  function writeState(name: string, state: { garden: string; url: string; seq: number }): string {
    writeFileSync(inFolder(name), `${JSON.stringify(state)}\n`);
    return inFolder(name);
  }

  test("without a secret", () =>
    expectRefused(
      {
        command: `events --forward ${hook} --state ${newState}`,
        exitCode: 2,
        reason: "SECRET is missing",
      },
      { PLANTSTORE_WEBHOOK_SECRET: "" },
    ));

  test("with a secret that is too short", () =>
    expectRefused(
      { command: `events --forward ${hook} --state ${newState}`, exitCode: 2, reason: "not valid" },
      { PLANTSTORE_WEBHOOK_SECRET: "whsec_c2g=" },
    ));

  test("to a URL without http or https", () =>
    expectRefused({
      command: `events --forward ftp://example.com --state ${newState}`,
      exitCode: 2,
      reason: "must be a URL with http",
    }));

  test("to a URL with a password, which isn't repeated", () =>
    expectRefused({
      command: `events --forward https://u:${serverPassword}@x.test --state ${newState}`,
      exitCode: 2,
      reason: "without a user",
    }));

  test("with a choice of events", () =>
    expectRefused({
      command: `events --forward ${hook} --state ${newState} --user ann`,
      exitCode: 2,
      reason: "Leave out --user.",
    }));

  test("without a state file", () =>
    expectRefused({
      command: `events --forward ${hook} --state=`,
      exitCode: 2,
      reason: "needs --state FILE",
    }));

  test("with a state file in a folder that is missing", () =>
    expectRefused({
      command: `events --forward ${hook} --state ${inFolder("missing/x.state")}`,
      exitCode: 1,
      reason: `Cannot write ${inFolder("missing/x.state")}: there is no such folder.`,
    }));

  test("with a file that is no state file", () => {
    writeFileSync(inFolder("empty.state"), "\n");

    return expectRefused({
      command: `events --forward ${hook} --state ${inFolder("empty.state")}`,
      exitCode: 2,
      reason: "is not a state file",
    });
  });

  test("with the state file of another garden", () => {
    const state = writeState("kims.state", { garden: "kim", url: hook, seq: 0 });

    return expectRefused({
      command: `events --forward ${hook} --state ${state}`,
      exitCode: 2,
      reason: 'belongs to another garden, "kim".',
    });
  });

  test("with the state file of another URL", () => {
    const state = writeState("other.state", { garden: "gardener", url: `${hook}/2`, seq: 0 });

    return expectRefused({
      command: `events --forward ${hook} --state ${state}`,
      exitCode: 2,
      reason: "belongs to another URL.",
    });
  });

  // `--from` is only for a new state file.
  test("after an event that the service doesn't have, and says which file to delete", () => {
    const state = writeState("later.state", { garden: "gardener", url: hook, seq: 7 });

    return expectRefused({
      command: `events --forward ${hook} --state ${state} --from start`,
      exitCode: 1,
      reason:
        "The events after 7 are no longer kept, or the service has other ones since a restore, " +
        `so some can't be sent. Delete ${state} to start over.`,
    });
  });
});
