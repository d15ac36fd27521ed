/** The command line as a user meets it: help, tokens beside a running service, wrong calls. */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, startService, waitFor } from "./running-service.ts";

describe("help and version", () => {
  test.each([["-v"], ["version"], ["--version"], ["token list --version"]])(
    "tells its version: plantstore %s",
    async (line) => {
      const { exitCode, out } = await runProgram(line.split(" "));
      expect([exitCode, out]).toEqual([0, `${manifest.version}\n`]);
    },
  );
});

test.skipIf(Bun.which("curl") === null)(
  "the lines that the first start prints work when they are pasted",
  async () => {
    await using service = await startService();
    const printed = service.output().errors;
    const lines = printed.split("\n").filter((line) => /^ {2}(?:export|curl| )/.test(line));
    const pasted = Bun.spawn(["sh"], { stdin: new Blob([lines.join("\n")]), stderr: "ignore" });
    const output = await pasted.stdout.text();
    const statuses = [...output.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(["201", "200", "204"]);
    expect(output).toContain('[{"name":"Monstera","tag":"living room"}]');
    expect(await (await service.call("GET /plants")).json()).toEqual([]);
  },
);

describe("tokens", () => {
  test("are made, listed and revoked beside a running service, which follows within 5 s", async () => {
    await using service = await startService();
    const { database } = service;
    const made = await runProgram(
      ["token", "create", "bob", "--garden", "team", "--scope", "read", "--expires", "30d"],
      { PLANTSTORE_DATABASE: database },
    );
    expect(made).toMatchObject({ exitCode: 0, errors: "" });
    expect(made.out).toMatch(/^plant_\w{49}\n$/);
    const token = made.out.trim();
    expect((await service.call("GET /plants", { token })).status).toBe(200);
    expect((await service.call("DELETE /plants/1", { token })).status).toBe(403);

    const listed = await runProgram(["token", "list", "--json", "--database", database]);
    expect(listed.out).not.toContain(token);
    const [, row] = JSON.parse(listed.out);
    expect(row).toMatchObject({ user: "bob", garden: "team", scope: "read", state: "active" });
    const table = await runProgram(["token", "list", "--database", database]);
    expect(table.out).toMatch(/^ID +USER +GARDEN .*\n\w{10} +gardener .*\n\w{10} +bob +team/);

    const revoked = await runProgram(["token", "revoke", row.id, "--database", database]);
    expect(revoked).toMatchObject({ exitCode: 0 });
    await waitFor(async () =>
      (await service.call("GET /plants", { token })).status === 401 ? true : undefined,
    );
    expect((await service.call("GET /plants")).status).toBe(200);
  });

  test("show when they were last used, once the service has stopped", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database });
    await service.call("GET /plants");
    service.signal("SIGTERM");
    await service.exited;
    const listed = await runProgram(["token", "list", "--json", "--database", database]);
    expect(JSON.parse(listed.out)[0].lastUsedAt).toMatch(/^\d{4}-/);
  });

  test("can be made before the first start, which then makes none of its own", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "new", "plants.db");
    const made = await runProgram(["token", "create", "alice", "--database", database]);
    expect(made.errors).toBe(
      `Created a new store in ${database}. A service that runs on another store won't know this ` +
        "token; give the service's own file with --database.\n",
    );
    await using service = await startService({ database });
    expect(service.token).toBe("");
    expect((await service.call("GET /plants", { token: made.out.trim() })).status).toBe(200);
  });
});

test("tokens that something else wrote into the file are listed without control characters", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  await runProgram(["token", "create", "alice", "--database", database]);
  const file = new Database(database);
  file.run("UPDATE tokens SET note = char(27) || '[2J'");
  file.close();
  const { out } = await runProgram(["token", "list", "--database", database]);
  expect(out).toContain("\\u001b[2J");
  expect(out).not.toContain("\u001b");
});

describe("a wrong call ends with one line that says why", () => {
  const usage = 2;
  const failure = 1;

  test.each<[line: string, exitCode: number, named: string]>([
    ["grow", usage, '"grow"'],
    ["serve --prot 80", usage, "--prot"],
    ["serve extra", usage, "extra"],
    ["serve --port 80000", usage, "--port"],
    ["serve --port", usage, "--port"],
    ["serve --port -1", usage, "--port"],
    ["serve --port 1 --port 2", usage, "--port"],
    ["serve --database :memory:", usage, "--database"],
    ["serve --host nope.invalid", failure, "nope.invalid"],
    ["serve --host a/b", usage, "--host"],
    ["serve --base-path v1", usage, "--base-path"],
    ["serve --cors-origins plants", usage, "--cors-origins"],
    ["serve --log loud", usage, "--log"],
    ["serve --database oracle://x", failure, "oracle:"],
    ["serve --database /dev/null/x/plants.db", failure, "/dev/null/x/plants.db"],
    ["serve --database /dev", failure, "/dev"],
    ["token create", usage, "USER"],
    ["token create a b", usage, "USER"],
    ["token create alice --scope admin", usage, "--scope"],
    ["token create alice --expires soon", usage, "--expires"],
    ["token list --database /nonexistent/plants.db", failure, "/nonexistent/plants.db"],
    ["token revoke nobody --database DATABASE", failure, "nobody"],
  ])("plantstore %s", async (line, exitCode, named) => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    await runProgram(["token", "create", "alice", "--database", database]);
    const finished = await runProgram(line.replace("DATABASE", database).split(" "));
    expect(finished).toMatchObject({ exitCode, out: "" });
    expect(finished.errors).toMatch(/^plantstore: .+\n$/);
    expect(finished.errors).toContain(named);
  });

  test("names an invalid environment variable", async () => {
    const finished = await runProgram(["serve"], { PLANTSTORE_PORT: "many" });
    expect(finished).toMatchObject({ exitCode: usage, out: "" });
    expect(finished.errors).toMatch(/^plantstore: PLANTSTORE_PORT must be .+"many"\.\n$/);
  });

  test("says that an environment variable is empty", async () => {
    const { exitCode, errors } = await runProgram(["token", "list"], { PLANTSTORE_DATABASE: "" });
    expect([exitCode, errors]).toEqual([
      usage,
      expect.stringMatching(/^plantstore: PLANTSTORE_DATA/),
    ]);
    expect(errors).toEndWith(", and is empty.\n");
  });

  test("a file that is not a database", async () => {
    using folder = makeTemporaryFolder();
    const path = join(folder.path, "letter.txt");
    writeFileSync(path, "Dear gardener, ".repeat(100));
    const finished = await runProgram(["serve", "--port", "0", "--database", path]);
    expect(finished).toMatchObject({ exitCode: failure, out: "" });
    expect(finished.errors).toBe(
      `plantstore: Cannot open ${path}: it is not a database (choose another file).\n`,
    );
  });

  test("a file that another process is serving", async () => {
    await using service = await startService();
    const { database } = service;
    const finished = await runProgram(["serve", "--port", "0", "--database", database]);
    expect(finished).toMatchObject({ exitCode: failure, out: "" });
    expect(finished.errors).toMatch(
      /^plantstore: .+ another process is serving it already \(.+ another file\)\.\n$/,
    );
  });

  test("a port that is in use", async () => {
    await using service = await startService();
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    const port = String(service.port);
    const finished = await runProgram(["serve", "--port", port, "--database", database]);
    expect(finished).toMatchObject({ exitCode: failure, out: "" });
    expect(finished.errors).toMatch(/^plantstore: Cannot listen on .+ the port is in use.+\n$/);
  });

  test("a host that is not this machine", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    const finished = await runProgram(["serve", "--host", "999.9.9.9", "--database", database]);
    expect(finished).toMatchObject({ exitCode: failure, out: "" });
    expect(finished.errors).toEndWith(": the host is no name or address of this machine.\n");
  });
});
