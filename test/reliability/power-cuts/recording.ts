/**
 * A life of the real program under load, recorded call by call and answer by answer: its first
 * start, stops, starts and commands beside it.
 */
import { join } from "node:path";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Gardeners } from "../gardeners.ts";
import { InterposedIo } from "../interposed-io/interposed-io.ts";
import { Ledger } from "../ledger.ts";
import type { Note } from "./account.ts";
import { type Leftover, lay, pretend } from "./leftover.ts";

export interface Life {
  readonly seed: number;
  /** How many writes are answered before a load ends. */
  readonly writes: number;
  /** One start, or also stops, starts and commands. */
  readonly extent: "brief" | "whole";
  /** How the program is changed. */
  readonly edits: readonly Edit[];
  /** What it finds: of an earlier life that ended with a power cut. */
  readonly leftover?: Leftover;
}

type TakeNote = (note: Note) => void;

const gardenersCount = 10;
const pollMs = 5;
/** On a slow machine, fewer writes must do. */
const loadMsMax = 30_000;
/** The first is that of the token that the first start prints. */
const gardens = ["gardener", "greenhouse", "balcony"] as const;

/** The log of the calls, with notes among them: one says where all happened, before it did. */
export async function record(life: Life): Promise<Buffer> {
  using folder = makeTemporaryFolder();
  using changed = life.edits.length > 0 ? changeProgram(life.edits) : undefined;
  using io = new InterposedIo(folder.path);
  const root = io.variables.INTERPOSED_FOLDER as string;
  // In folders that the program has to make.
  const database = join(root, "data/here/plants.db");
  const takeNote: TakeNote = (note) => io.note(JSON.stringify(note));
  const tokens = new Map<string, string>();
  if (life.leftover) {
    lay(life.leftover.image, root);
    pretend(life.leftover, root, io);
    for (const note of life.leftover.notes) {
      if (note.kind === "token") tokens.set(note.garden, note.token);
    }
  }
  takeNote({ kind: "place", root, database });
  const keepToken = (garden: string, token: string) => {
    tokens.set(garden, token);
    takeNote({ kind: "token", garden, token });
  };
  const makeToken = async (garden: string) => {
    const variables = { ...io.variables, PLANTSTORE_DATABASE: database };
    const { out } = await runProgram(["token", "create", garden], variables);
    keepToken(garden, out.trim());
  };
  const start = () =>
    startService({ database, program: changed?.program, variables: io.variables });
  const [first, second, third] = gardens;

  {
    await using service = await start();
    if (service.token !== "") keepToken(first, service.token);
    await using load = new Load(service, tokens, life.seed, takeNote);
    if (life.extent === "whole") await makeToken(second);
    await load.reach(life.writes);
    if (life.extent === "brief") return io.log();
    await stop(service);
  }
  // When nobody serves, a command is the last to close the file, and writes its log back.
  await makeToken(third);
  for (const seed of [life.seed + 1, life.seed + 2]) {
    await using service = await start();
    await using load = new Load(service, tokens, seed, takeNote);
    await load.reach(life.writes);
    await stop(service);
  }
  return io.log();
}

async function stop(service: RunningService): Promise<void> {
  service.signal("SIGTERM");
  await service.exited;
}

/** Gardeners in every garden; what they send and hear is noted. */
class Load {
  readonly #crews: readonly Gardeners[];
  #answered = 0;

  constructor(
    service: RunningService,
    tokens: ReadonlyMap<string, string>,
    seed: number,
    takeNote: TakeNote,
  ) {
    const noted = (garden: string) =>
      noteExchanges(service, garden, (note) => {
        takeNote(note);
        if (note.kind === "answered") this.#answered++;
      });
    this.#crews = [...tokens].map(([garden, token], index) => {
      const instance = { service: noted(garden), token };
      const seedOfCrew = seed * gardens.length + index;
      return new Gardeners([instance], new Ledger(), gardenersCount, seedOfCrew);
    });
  }

  async reach(writes: number): Promise<void> {
    const endMs = performance.now() + loadMsMax;
    while (this.#answered < writes && performance.now() < endMs) await Bun.sleep(pollMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#crews.map((crew) => crew.stop()));
  }
}

let exchanges = 0;

/** Noted before it is sent and after it was answered: never more is owed than was, nor later. */
function noteExchanges(
  service: RunningService,
  garden: string,
  takeNote: TakeNote,
): RunningService {
  return {
    ...service,
    async call(request, init = {}) {
      if (request.startsWith("GET")) return service.call(request, init);
      const number = exchanges++;
      const key = new Headers(init.headers).get("idempotency-key") ?? undefined;
      const body = init.body as string | undefined;
      takeNote({ kind: "sent", number, garden, request, body, key });
      const response = await service.call(request, init);
      const location = response.headers.get("location") ?? undefined;
      takeNote({ kind: "answered", number, status: response.status, location });
      return response;
    },
  };
}
