/** The system's nginx or HAProxy, with the configuration in deploy/, in front of two instances. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../end-to-end/running-service.ts";
import { pickPorts } from "../../processes.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";

export type BalancerName = "nginx" | "haproxy";

const deploy = join(import.meta.dir, "../../../deploy");

export class LoadBalancer {
  readonly name: BalancerName;
  readonly port: number;
  readonly #log: string;

  private constructor(name: BalancerName, port: number, log: string) {
    this.name = name;
    this.port = port;
    this.#log = log;
  }

  /** Whether the system has it; both are in /usr/sbin, which isn't on everybody's path. */
  static find(name: BalancerName): string | null {
    return Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin` });
  }

  static version(name: BalancerName): string {
    const { stdout, stderr } = Bun.spawnSync([LoadBalancer.find(name) ?? name, "-v"]);
    return `${stdout}${stderr}`.split("\n")[0] ?? "";
  }

  /** It goes away with this process. */
  static async start(name: BalancerName, instances: readonly number[]): Promise<LoadBalancer> {
    const folder = makeTemporaryFolder();
    const [port = 0] = pickPorts(1);
    const log = join(folder.path, "log");
    const write = name === "nginx" ? writeNginx : writeHaproxy;
    const args = write(folder.path, log, [port, ...instances]);
    const child = Bun.spawn([LoadBalancer.find(name) ?? name, ...args], {
      stdin: "ignore",
      stdout: Bun.file(log),
      stderr: Bun.file(join(folder.path, "errors")),
    });
    process.on("exit", () => {
      // nginx's master stops its workers, which SIGKILL would leave behind.
      child.kill("SIGTERM");
      folder[Symbol.dispose]();
    });
    const proxy = new LoadBalancer(name, port, log);
    await waitFor(
      () =>
        fetch(`${proxy.url}/readyz`).then(
          (response) => response.ok || undefined,
          () => undefined,
        ),
      () => child.exitCode !== null && readFileSync(join(folder.path, "errors"), "utf8"),
    );
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What it has logged so far. */
  log(): string {
    return readFileSync(this.#log, "utf8");
  }
}

/** Included in a block `http`, as a user would. */
function writeNginx(folder: string, log: string, ports: readonly number[]): string[] {
  const included = substitute(join(deploy, "nginx/plantstore.conf"), ports).replace(
    /access_log \S+/,
    `access_log ${log}`,
  );
  writeFileSync(join(folder, "plantstore.conf"), included);
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const config = [
    process.getuid?.() === 0 ? "user root;" : "",
    `daemon off; pid ${folder}/pid; worker_processes 2; error_log ${log} info;`,
    `events { worker_connections 1024; }`,
    `http { ${paths.join(" ")} include ${folder}/plantstore.conf; }`,
  ];
  writeFileSync(join(folder, "nginx.conf"), config.join("\n"));
  return ["-c", join(folder, "nginx.conf"), "-e", log];
}

function writeHaproxy(folder: string, _: string, ports: readonly number[]): string[] {
  const config = substitute(join(deploy, "haproxy/haproxy.cfg"), ports);
  writeFileSync(join(folder, "haproxy.cfg"), config);
  return ["-f", join(folder, "haproxy.cfg")];
}

/** The configuration with other addresses, and nothing else changed. */
function substitute(path: string, [own, one, two]: readonly number[]): string {
  const text = readFileSync(path, "utf8");
  return text
    .replace(/^( +)(listen |bind :)80\b/m, (_, indent, word) => {
      return `${indent}${word.replace(":", "")}127.0.0.1:${own}`;
    })
    .replace("127.0.0.1:8081", `127.0.0.1:${one}`)
    .replace("127.0.0.1:8082", `127.0.0.1:${two}`);
}
