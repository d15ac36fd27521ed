/** Opens the storage itself for the commands that work without the service. */
import { readLimits, readSetting } from "../shared/config.ts";
import { openStorage } from "../storage/open.ts";
import type { OpenOptions, Storage } from "../storage/storage.ts";
import type { Call } from "./command.ts";

/** Opens the store that the call names, even while a service uses it. */
export async function withStorage<Result>(
  call: Call,
  use: (storage: Storage) => Promise<Result>,
  options: Partial<OpenOptions> = { mustExist: true },
): Promise<Result> {
  const address = readSetting("database", call.flags, call.terminal.env);
  const storage = await openStorage(address, {
    isServing: false,
    limits: readLimits(call.flags, call.terminal.env),
    ...options,
  });
  try {
    return await use(storage);
  } finally {
    await storage.close();
  }
}
