/**
 * Opens a damaged store as the service does, asks and writes, and judges: damage may be refused or
 * reported, but nothing may be rewritten in silence, shown out of order or shown to others.
 */
import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Storage } from "../../../src/domain/storage.ts";
import type { assemble } from "../../../src/listening/assembly.ts";
import { createLog } from "../../../src/log.ts";
import type { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import type { Trial } from "../proof.ts";
import { isSameStore, readStore, type StoreFiles, writeStore } from "../store-files.ts";
import { type Damage, damage } from "./damage.ts";
import { foreignMark, token } from "./sound-store.ts";

/**
 * What came of an image: the service refused it, said of some request that it cannot, or answered
 * all.
 */
type Course = "refused" | "reported" | "answered";

/** Of the program that is examined, which may be a changed one. */
export interface Parts {
  readonly openSqlite: typeof openSqlite;
  readonly assemble: typeof assemble;
}

interface Findings {
  readonly faults: string[];
  readonly figures: Record<string, number>;
}

export async function examine(
  parts: Parts,
  sound: { folded: StoreFiles; logged: StoreFiles },
  seed: number,
): Promise<Trial> {
  const dice = makeDice(spread(seed));
  const before = dice(2) === 0 ? sound.folded : sound.logged;
  const isEarly = dice(4) > 0;
  const spoilt = damage(before, dice);
  const findings: Findings = { faults: [], figures: {} };
  using folder = makeTemporaryFolder(fastestParent());
  const path = join(folder.path, "plants.db");
  const course = isEarly
    ? await startOn(parts, path, spoilt, findings)
    : await spoilWhileServing(parts, path, before, spoilt, findings);
  findings.figures[`${isEarly ? "before the start" : "while serving"}, ${course}`] = 1;
  const where = `${spoilt.what}, ${isEarly ? "before the start" : "while serving"}`;
  return {
    faults: findings.faults.map((fault) => `${where}: ${fault}`),
    figures: findings.figures,
  };
}

async function startOn(
  parts: Parts,
  path: string,
  { files }: Damage,
  findings: Findings,
): Promise<Course> {
  const { faults } = findings;
  writeStore(path, files);
  let storage: Storage;
  try {
    storage = parts.openSqlite(path, { isServing: true });
  } catch (error) {
    if (!/^PlantStoreError: Cannot open .+\.$/.test(String(error))) {
      faults.push(`refused as ${error}`);
    }
    if (!isSameStore(readStore(path), files)) faults.push("rewritten by a start that was refused");
    return "refused";
  }
  const isWhole = checkIntegrity(path, files);
  const client = new Client(parts, storage, findings);
  await client.read();
  // Nothing at all is a new store.
  const isNew = files.database.length === 0 && files.log.length === 0;
  if (!isNew && !isSameStore(readStore(path), files)) faults.push("rewritten by reading");
  if (!isWhole && !client.wasReported) faults.push("answered as if whole");
  await client.write();
  await storage.close();
  return client.wasReported ? "reported" : "answered";
}

async function spoilWhileServing(
  parts: Parts,
  path: string,
  sound: StoreFiles,
  { files }: Damage,
  findings: Findings,
): Promise<Course> {
  writeStore(path, sound);
  const storage = parts.openSqlite(path, { isServing: true });
  const client = new Client(parts, storage, findings);
  writeFileSync(path, files.database);
  if (files.log.length > 0) writeFileSync(`${path}-wal`, files.log);
  await client.read();
  await client.write();
  await client.read();
  await storage.close();
  return client.wasReported ? "reported" : "answered";
}

/** Whether SQLite itself, asked for everything that it can know, finds nothing wrong. */
function checkIntegrity(path: string, files: StoreFiles): boolean {
  const copy = `${path}.copy`;
  writeStore(copy, files);
  let database: Database | undefined;
  try {
    database = new Database(copy);
    const [row] = database.query<Record<string, string>, []>("PRAGMA integrity_check").all();
    return Object.values(row ?? {})[0] === "ok";
  } catch {
    return false;
  } finally {
    database?.close();
  }
}

/** Asks the app as the owner of the garden would, and looks at every answer. */
class Client {
  wasReported = false;
  readonly #fetch: (request: Request) => Promise<Response>;
  readonly #findings: Findings;
  #logged = "";
  readonly #flush: () => void;

  constructor(parts: Parts, storage: Storage, findings: Findings) {
    const log = createLog("json", (text) => {
      this.#logged += text;
    });
    const { app } = parts.assemble({ basePath: "", corsOrigins: "*" }, storage, log);
    this.#fetch = app.fetch;
    this.#flush = log.flush;
    this.#findings = findings;
  }

  async read(): Promise<void> {
    this.#checkList(await this.#send("GET /plants?fields=id,name,tag"));
    let target: string | undefined = "/plants?fields=id,name&limit=50";
    for (let pages = 0; target !== undefined; pages++) {
      if (pages > 100) return this.#fault("its pages have no end");
      const answer = await this.#send(`GET ${target}`);
      this.#checkList(answer);
      target = /<(.+)>/.exec(answer.headers.get("link") ?? "")?.[1];
    }
    await this.#send("GET /readyz");
  }

  async write(): Promise<void> {
    const created = await this.#send("POST /plants", { body: '{"name":"New"}' });
    await this.#send("POST /plants", { body: '{"name":"New","id":150}' });
    await this.#send("DELETE /plants/200");
    await this.#send("DELETE /plants/1000000");
    const keyed = { body: '{"name":"New"}', headers: { "Idempotency-Key": "new" } };
    const [first, second] = [
      await this.#send("POST /plants", keyed),
      await this.#send("POST /plants", keyed),
    ];
    const locations = [first, second].map(
      ({ status, headers }) => status === 201 && headers.get("location"),
    );
    if (locations[0] && locations[1] && locations[0] !== locations[1])
      this.#fault("a key held twice");
    if (created.status === 201) this.#findings.figures["created nevertheless"] = 1;
  }

  async #send(request: string, init: RequestInit = {}): Promise<Answer> {
    const [method = "", target = ""] = request.split(" ");
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    headers.set("host", "localhost");
    if (init.body) headers.set("content-type", "application/json");
    const response = await this.#fetch(
      new Request(`http://localhost${target}`, { ...init, method, headers }),
    );
    const text = await response.text().catch(() => undefined);
    this.#flush();
    const answer = { request, status: response.status, headers: response.headers, text };
    this.#judge(answer);
    return answer;
  }

  #judge({ request, status, headers, text }: Answer): void {
    if (text !== undefined && status < 500) return;
    this.wasReported = true;
    const requestId = headers.get("x-request-id") ?? "none";
    if (text !== undefined && status !== 503) this.#fault(`${request}: ${status} ${this.#logged}`);
    const reports = this.#logged.split("\n").filter((line) => line.includes('"level":"error"'));
    if (!reports.some((line) => line.includes(requestId))) this.#fault(`${request}: not logged`);
  }

  #checkList({ request, status, text }: Answer): void {
    if (status !== 200 || text === undefined) return;
    try {
      const plants: { id: number; name: string }[] = JSON.parse(text);
      // Not those that hold it: inside of a plant, nobody can tell bytes of another one.
      if (plants.some(({ name }) => name.startsWith(foreignMark))) {
        this.#fault(`${request}: shows another garden's plants`);
      }
      if (plants.some(({ id }, index) => index > 0 && id <= (plants[index - 1]?.id ?? id))) {
        this.#fault(`${request}: out of order`);
      }
    } catch (error) {
      this.#fault(`${request}: ${error}`);
    }
  }

  #fault(text: string): void {
    this.#findings.faults.push(text);
  }
}

interface Answer {
  readonly request: string;
  readonly status: number;
  readonly headers: Headers;
  /** Absent if it broke off. */
  readonly text: string | undefined;
}
