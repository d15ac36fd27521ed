/**
 * What can be checked of the containers without running one: settings, names, ports, paths,
 * secrets.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig, settings } from "../src/config.ts";
import { serviceOperations } from "../src/http/operations.ts";
import { parseUrl } from "../src/storage/postgres/url.ts";

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly read_only?: boolean;
}

const read = (name: string) => readFileSync(join(import.meta.dir, name), "utf8");
const { services } = Bun.YAML.parse(read("compose.yaml")) as { services: Record<string, Service> };
const balancer = read("haproxy/haproxy.cfg");
const containerfile = read("Containerfile");
const ofImage = Object.fromEntries(
  [...containerfile.matchAll(/(PLANTSTORE_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
);

test.each([
  ["instance-one", services["instance-one"]?.environment],
  ["instance-two", services["instance-two"]?.environment],
  ["image", ofImage],
])(
  "the %s has only settings that there are, with values that make sense",
  (_, environment = {}) => {
    const known: string[] = Object.values(settings).map(({ environment }) => environment);
    const own = Object.keys(environment).filter((name) => name.startsWith("PLANTSTORE_"));
    expect(own.filter((name) => !known.includes(name))).toEqual([]);
    expect(readConfig({}, environment)).toMatchObject({ host: "0.0.0.0", port: 8080 });
  },
);

test("an instance finds the database beside it, and can't write to its image", () => {
  const { environment, read_only } = services["instance-one"] ?? {};
  const { host, port, user, database, password } = parseUrl(environment?.PLANTSTORE_DATABASE ?? "");
  expect({ host, port }).toEqual({ host: "postgres", port: 5432 });
  expect(services.postgres?.environment).toMatchObject({
    POSTGRES_USER: user,
    POSTGRES_DB: database,
    POSTGRES_PASSWORD: environment?.PGPASSWORD,
  });
  expect([password, read_only]).toEqual([undefined, true]);
});

test("the balancer leads to the instances, asks for a path that there is, and is for this machine only", () => {
  const { environment = {}, ports } = services.balancer ?? {};
  const servers = [...balancer.matchAll(/^ +server \w+ "\$\{(\w+)-/gm)].map(
    ([, name = ""]) => name,
  );
  expect(servers.map((name) => environment[name])).toEqual([
    "instance-one:8080",
    "instance-two:8080",
  ]);
  const paths = serviceOperations.map(({ path }) => path);
  expect(paths).toContain(/httpchk GET (\S+)/.exec(balancer)?.[1] ?? "");
  const listens = /^ +bind :(\d+)/m.exec(balancer)?.[1];
  expect(ports).toEqual([`127.0.0.1:\${DEMO_PORT:-8080}:${listens}`]);
});

test("every password comes from the environment, and there is no default", () => {
  const secrets = Object.values(services).flatMap(({ environment = {} }) =>
    Object.entries(environment).filter(([name]) => /PASSWORD|SECRET|TOKEN/.test(name)),
  );
  expect(secrets.length).toBeGreaterThan(0);
  for (const [, value] of secrets) expect(value).toMatch(/^\$\{[A-Z_]+:\?.+\}$/);
});

test("the image is made of files that there are, without development dependencies, and not for root", () => {
  const copied = [...containerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, names = ""]) =>
    names.split(" "),
  );
  expect(copied).toContain("src");
  expect(copied.filter((name) => !existsSync(join(import.meta.dir, "..", name)))).toEqual([]);
  const kept = read("Containerfile.dockerignore");
  expect(copied.filter((name) => !kept.includes(`!${name}\n`))).toEqual([]);
  expect(containerfile).toContain("npm ci --omit=dev");
  expect(containerfile).toContain("USER 65532:65532\n");
  expect(containerfile).toContain("--chown=65532:65532 /data /data\n");
});
