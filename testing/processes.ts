/** What tests share with the rest of the machine: processes and ports. */
import { readdirSync, readFileSync } from "node:fs";

/** From /proc, because a minimal Linux has no `ps`; other systems have it, and no /proc. */
export function listProcesses() {
  if (process.platform !== "linux") return askPs();
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        // The name stands in parentheses and may hold any character; state and parent follow.
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        const parent = stat.slice(stat.lastIndexOf(")")).split(" ")[2];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(pid), parent: Number(parent), command }];
      } catch {
        // It has ended since.
        return [];
      }
    });
}

function askPs() {
  const { stdout } = Bun.spawnSync(["ps", "-A", "-ww", "-o", "ppid=,pid=,command="]);
  const lines = stdout.toString().trim().split("\n");
  return lines.map((line) => {
    const [parent, pid, ...command] = line.trim().split(/\s+/);
    return { parent: Number(parent), pid: Number(pid), command: command.join(" ") };
  });
}

/** Signals a server and all its children. Stops the server first, so that it starts no others. */
export function signalAll(
  server: { readonly pid: number; readonly folder: string },
  signal: NodeJS.Signals,
): void {
  // After its end, the pid may belong to another process.
  const isIt = listProcesses().some(
    ({ pid, command }) => pid === server.pid && command.includes(server.folder),
  );
  if (!isIt) return;
  send(server.pid, "SIGSTOP");
  for (const { parent, pid } of listProcesses()) {
    if (parent === server.pid) send(pid, signal);
  }
  send(server.pid, signal);
}

/** Returns whether there is such a process. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/**
 * Ports that are free and stay free: the system picks higher ones for outgoing connections and for
 * programs that ask for any port.
 */
export function pickPorts(count: number): number[] {
  const ports: number[] = [];
  for (let port = 15_000 + Math.floor(Math.random() * 10_000); ports.length < count; port++) {
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      ports.push(port);
    } catch {
      // Somebody else's.
    }
  }
  return ports;
}
