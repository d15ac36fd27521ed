/** Work that must be over by a moment. */
import { ConnectionLost } from "./failure.ts";

/** Fails with `ConnectionLost` when the time is over before the work is. */
export async function before<Result>(dueAtMs: number, work: Promise<Result>): Promise<Result> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const remainingMs = Math.max(0, dueAtMs - performance.now());
    timer = setTimeout(() => reject(new ConnectionLost("No answer in time.")), remainingMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
