/**
 * A life of the real program under load, recorded call by call and answer by answer: its first start,
 * stops, starts and commands beside it.
 */
import { join } from "node:path";
import { changeProgram, type Edit } from "../../changed-program.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Gardeners } from "../failover/gardeners.ts";
import { Ledger } from "../failover/ledger.ts";
import { InterposedIo } from "../interposed-io/interposed-io.ts";
import type { Note } from "./account.ts";

export interface Life {
  readonly seed: number;
  /** How long the load lasts, each time. */
  readonly loadMs: number;
  /** One start, or also stops, starts and commands. */
  readonly extent: "brief" | "whole";
  /** How the program is changed. */
  readonly edits: readonly Edit[];
}

type TakeNote = (note: Note) => void;

const gardenersCount = 10;
/** The first is that of the token that the first start prints. */
const gardens = ["gardener", "greenhouse", "balcony"] as const;

/** The log of the calls, with notes among them: the first says where all happened. */
export async function record(life: Life): Promise<Buffer> {
  using folder = makeTemporaryFolder();
  using changed = life.edits.length > 0 ? changeProgram(life.edits) : undefined;
  using io = new InterposedIo(folder.path);
  const root = io.variables.INTERPOSED_FOLDER as string;
  // In folders that the program has to make.
  const database = join(root, "data/here/plants.db");
  const takeNote: TakeNote = (note) => io.note(JSON.stringify(note));
  takeNote({ kind: "place", root, database });
  const tokens = new Map<string, string>();
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
    keepToken(first, service.token);
    const tending = tend(service, tokens, life, takeNote);
    if (life.extent === "whole") await makeToken(second);
    await tending;
    if (life.extent === "brief") return io.log();
    await stop(service);
  }
  // When nobody serves, a command is the last to close the file, and writes its log back.
  await makeToken(third);
  {
    await using service = await start();
    const tending = tend(service, tokens, { ...life, seed: life.seed + 1 }, takeNote);
    await Bun.sleep(life.loadMs);
    await stop(service);
    await tending;
  }
  await using service = await start();
  await tend(service, tokens, { ...life, seed: life.seed + 2 }, takeNote);
  return io.log();
}

async function stop(service: RunningService): Promise<void> {
  service.signal("SIGTERM");
  await service.exited;
}

/** Gardeners in every garden, for a while; what they send and hear is noted. */
async function tend(
  service: RunningService,
  tokens: ReadonlyMap<string, string>,
  { seed, loadMs }: Life,
  takeNote: TakeNote,
): Promise<void> {
  const crews = [...tokens].map(([garden, token], index) => {
    const instance = { service: noteExchanges(service, garden, takeNote), token };
    return new Gardeners([instance], new Ledger(), gardenersCount, seed * gardens.length + index);
  });
  await Bun.sleep(loadMs);
  await Promise.all(crews.map((crew) => crew.stop()));
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
