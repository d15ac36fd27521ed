/** Runs commands in the test's own process, with an environment and an input of their own. */
import { runCommand } from "../src/cli/run.ts";
import { showLines, type Terminal } from "../src/cli/terminal.ts";

/** Nobody watches it, unless `more` says so. */
export function makeTerminal(more: Partial<Terminal> = {}) {
  const written = { out: "", said: [] as string[] };
  const terminal: Terminal = {
    env: {},
    stdin: readBytes(""),
    isStdoutTty: false,
    isStderrTty: false,
    out(text) {
      written.out += text;
    },
    say: (text) => void written.said.push(showLines(text)),
    ...more,
  };
  return { terminal, written };
}

/** Takes the words of a command, or a line without quotes. */
export async function runInProcess(
  args: string | readonly string[],
  env: Terminal["env"] = {},
  stdin = "",
) {
  const { terminal, written } = makeTerminal({ env, stdin: readBytes(stdin) });
  const words = typeof args === "string" ? args.split(" ") : args;
  const exitCode = await runHere(words, terminal);
  return { exitCode, out: written.out, errors: written.said.map((line) => `${line}\n`).join("") };
}

/** `serve` leaves what it does at a signal in place, because the process ends with it. */
export async function runHere(args: readonly string[], terminal: Terminal): Promise<number> {
  const signals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;
  const before = signals.map((signal) => process.listeners(signal));
  try {
    return await runCommand(args, terminal);
  } finally {
    for (const [index, signal] of signals.entries()) {
      for (const listener of process.listeners(signal)) {
        if (!before[index]?.includes(listener)) process.off(signal, listener);
      }
    }
  }
}

async function* readBytes(text: string): AsyncGenerator<Uint8Array, void> {
  yield new TextEncoder().encode(text);
}
