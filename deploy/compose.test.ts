/**
 * What can be checked of the containers without running one (`npm run prove containers` does that):
 * settings, names, ports, paths, secrets.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig, settings } from "../src/config.ts";
import { operations } from "../src/http/operations.ts";
import { idleTimeoutSeconds } from "../src/server/listener.ts";
import { parseUrl } from "../src/storage/postgres/url.ts";

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly read_only?: boolean;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const folder = import.meta.dir;
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const { services, volumes } = Bun.YAML.parse(read("compose.yaml")) as Compose;
const caddyfile = read("Caddyfile");
const containerfile = read("Containerfile");

const instances = Object.entries(services).filter(([name]) => name.startsWith("instance-"));
const variables = new Set(Object.values(settings).map(({ environment }) => environment));
const paths = operations.map(({ path }) => path);

/** The variables of the service itself. */
function ownVariables(environment: Readonly<Record<string, string>> = {}) {
  return Object.entries(environment).filter(([name]) => name.startsWith("PLANTSTORE_"));
}

test("there are two instances", () => {
  expect(instances.map(([name]) => name)).toEqual(["instance-one", "instance-two"]);
});

describe.each(instances)("%s", (...[, instance]) => {
  const { environment, depends_on, healthcheck, read_only } = instance;

  test("has only settings that there are, with values that make sense", () => {
    const own = ownVariables(environment);
    expect(own.filter(([name]) => !variables.has(name))).toEqual([]);
    expect(readConfig({}, environment)).toMatchObject({ host: "0.0.0.0", port: 8080 });
  });

  test("finds the database that is beside it", () => {
    const { hosts, user, database, password } = parseUrl(environment?.PLANTSTORE_DATABASE ?? "");
    expect(hosts).toEqual([{ host: "postgres", port: 5432 }]);
    expect(services.postgres?.environment).toMatchObject({
      POSTGRES_USER: user,
      POSTGRES_DB: database,
      POSTGRES_PASSWORD: environment?.PGPASSWORD,
    });
    expect(password).toBeUndefined();
    expect(depends_on).toHaveProperty("postgres");
  });

  test("has the health check of the image, which it can't write to", () => {
    // Some versions of podman-compose would run another check in a shell, which isn't there.
    expect(healthcheck).toBeUndefined();
    expect(containerfile).toContain('CMD ["plantstore", "health"]\n');
    expect(read_only).toBe(true);
  });
});

test("the balancer leads to the instances, asks for a path that there is, and is for this machine only", () => {
  const upstreams = instances.map(([name, { environment }]) => {
    return `${name}:${environment?.PLANTSTORE_PORT}`;
  });
  expect(caddyfile).toContain(`reverse_proxy ${upstreams.join(" ")} {`);
  expect(paths).toContain(/health_uri (\S+)/.exec(caddyfile)?.[1] ?? "");
  const listens = /^:(\d+) \{/m.exec(caddyfile)?.[1];
  expect(services.balancer?.ports).toEqual([`127.0.0.1:\${DEMO_PORT:-8080}:${listens}`]);
  // It closes idle connections before an instance does.
  const keptSeconds = Number(/^\t+keepalive (\d+)s$/m.exec(caddyfile)?.[1]);
  expect(keptSeconds).toBeLessThan(idleTimeoutSeconds);
});

test("every password comes from the environment, and there is no default", () => {
  const secrets = Object.values(services).flatMap(({ environment = {} }) =>
    Object.entries(environment).filter(([name]) => /PASSWORD|SECRET|TOKEN/.test(name)),
  );
  expect(secrets.length).toBeGreaterThan(0);
  for (const [, value] of secrets) expect(value).toMatch(/^\$\{[A-Z_]+:\?.+\}$/);
});

test("everything that is mounted, built or depended on is there", () => {
  for (const { volumes: mounts = [], build, depends_on = [] } of Object.values(services)) {
    for (const mount of mounts) {
      const [source = ""] = mount.split(":");
      expect(source.startsWith(".") ? existsSync(join(folder, source)) : source in volumes).toBe(
        true,
      );
    }
    if (build) expect(existsSync(join(folder, build.context, build.dockerfile))).toBe(true);
    const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
    expect(needed.filter((name) => !(name in services))).toEqual([]);
  }
});

describe("the image", () => {
  test("is made of files that there are, and of no development dependency", () => {
    const copied = [...containerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(
      ([, names = ""]) => names.split(" "),
    );
    expect(copied).toContain("src");
    expect(copied.filter((name) => !existsSync(join(folder, "..", name)))).toEqual([]);
    // What builds it imports nothing from elsewhere.
    const imported = Array.from(
      read("../scripts/build.ts").matchAll(/ from "\.\.\/([^/"]+)/g),
      ([, name = ""]) => name,
    );
    expect(imported.filter((name) => !copied.includes(name))).toEqual([]);
    const kept = read("Containerfile.dockerignore");
    expect(copied.filter((name) => !kept.includes(`!${name}\n`))).toEqual([]);
    expect(containerfile).toContain("npm ci --omit=dev");
    expect(containerfile).toContain("npm run build");
  });

  test("runs the service, on all addresses, and not as root", () => {
    const environment = Object.fromEntries(
      [...containerfile.matchAll(/(PLANTSTORE_\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [
        name,
        value,
      ]),
    );
    expect(ownVariables(environment).filter(([name]) => !variables.has(name))).toEqual([]);
    const { host, port } = readConfig({}, environment);
    expect(host).toBe("0.0.0.0");
    expect(containerfile).toContain(`EXPOSE ${port}\n`);
    expect(containerfile).toContain("USER 65532:65532\n");
    expect(containerfile).toContain("--chown=65532:65532 /data /data\n");
    const entry = /^ENTRYPOINT (.+)$/m.exec(containerfile)?.[1] ?? "[]";
    expect(JSON.parse(entry)).toEqual(["plantstore"]);
  });
});
