/**
 * What can be checked of image, Compose file and manifests where no container runs: settings,
 * names, ports, probes, rights, secrets.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { CronJob } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { PersistentVolumeClaim, Pod, Service } from "kubernetes-models/v1";
import manifest from "../package.json" with { type: "json" };
import { serviceOperations } from "../src/http/operations/index.ts";
import { readConfig, settings } from "../src/shared/config.ts";
import { parseUrl } from "../src/storage/postgres/url.ts";

const read = (name: string) => readFileSync(join(import.meta.dir, name), "utf8");
const containerfile = read("Containerfile");
const paths = serviceOperations.map(({ path }) => path);

/** There are such settings, and their values make sense. */
function readSettings(environment: Record<string, string>) {
  const known: string[] = Object.values(settings).map((setting) => setting.environment);
  const own = Object.keys(environment).filter((name) => name.startsWith("PLANTSTORE_"));
  expect(own.filter((name) => !known.includes(name))).toEqual([]);
  return readConfig({}, environment);
}

/** What the image sets, unless somebody sets something else. */
function imageSettings(): Record<string, string> {
  const values = containerfile.matchAll(/(PLANTSTORE_\w+)=(\S+)/g);
  return Object.fromEntries(Array.from(values, ([, name, value]) => [name, value]));
}

test("the image has settings for a container, and is made of files that there are, not for root", () => {
  expect(readSettings(imageSettings())).toMatchObject({ host: "0.0.0.0", port: 8080 });
  const lines = containerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm);
  const copied = Array.from(lines, ([, names = ""]) => names.split(" ")).flat();
  expect(copied).toContain("src");
  expect(copied.filter((name) => !existsSync(join(import.meta.dir, "..", name)))).toEqual([]);
  const kept = read("Containerfile.dockerignore");
  expect(copied.filter((name) => !kept.includes(`!${name}\n`))).toEqual([]);
  expect(containerfile).toContain("USER 65532:65532\n");
  expect(containerfile).toContain("--chown=65532:65532 /data /data\n");
});

describe("compose.yaml", () => {
  const { services } = Bun.YAML.parse(read("compose.yaml")) as {
    services: Record<string, { environment?: Record<string, string>; ports?: string[] }>;
  };

  test.each(["instance-one", "instance-two"])("%s finds the database beside it", (name) => {
    const { environment = {}, ...service } = services[name] ?? {};
    expect(readSettings(environment)).toMatchObject({ host: "0.0.0.0", port: 8080 });
    const { host, port, user, database, password } = parseUrl(
      environment.PLANTSTORE_DATABASE ?? "",
    );
    expect([host, port, password]).toEqual(["postgres", 5432, undefined]);
    expect(services.postgres?.environment).toMatchObject({
      POSTGRES_USER: user,
      POSTGRES_DB: database,
      POSTGRES_PASSWORD: environment.PGPASSWORD,
    });
    expect(service).toMatchObject({ read_only: true });
  });

  test("the balancer leads to the instances, asks for a path that there is, and is for this machine only", () => {
    const balancer = read("haproxy/haproxy.cfg");
    const { environment = {}, ports } = services.balancer ?? {};
    const servers = balancer.matchAll(/^ +server \w+ "\$\{(\w+)-/gm);
    expect(Array.from(servers, ([, name = ""]) => environment[name])).toEqual([
      "instance-one:8080",
      "instance-two:8080",
    ]);
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
});

describe("compose-sqlite.yaml", () => {
  const { services, volumes } = Bun.YAML.parse(read("compose-sqlite.yaml")) as {
    services: Record<string, Record<string, string[]> & { environment: Record<string, string> }>;
    volumes: Record<string, unknown>;
  };
  const service = services.plantstore;

  test("its settings make sense, and the store is in a volume that outlives the container", () => {
    const { database } = readSettings({ ...imageSettings(), ...service?.environment });
    const [place = ""] = service?.volumes ?? [];
    const [name = "", folder] = place.split(":");
    expect(database).toStartWith(`${folder}/`);
    expect(Object.keys(volumes)).toEqual([name]);
  });

  test("it has as few rights as an instance of compose.yaml, and is for this machine only", () => {
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
    expect(service?.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:.*:8080$/)]);
  });
});

const models = {
  ...{ Deployment, StatefulSet, HorizontalPodAutoscaler, PodDisruptionBudget, Service },
  ...{ CronJob, PersistentVolumeClaim, Pod },
};

type Resource = { readonly kind: keyof typeof models; readonly [name: string]: unknown };

const readManifest = (name: string) =>
  [Bun.YAML.parse(read(`kubernetes/${name}`))].flat() as Resource[];
const files = {
  "postgres.yaml": readManifest("postgres.yaml"),
  "embedded.yaml": readManifest("embedded.yaml"),
  "backup.yaml": readManifest("backup.yaml"),
  "restore.yaml": readManifest("restore.yaml"),
};
const all = Object.entries(files).flatMap(([file, resources]) =>
  resources.map((resource) => [`${resource.kind} of ${file}`, resource] as const),
);

function workloadOf(file: keyof typeof files) {
  const isWorkload = ({ kind }: Resource) => kind === "Deployment" || kind === "StatefulSet";
  const { spec } = new StatefulSet(files[file].find(isWorkload) as never).toJSON();
  const pod = spec?.template.spec;
  return { spec, pod, container: pod?.containers[0] };
}

test.each(all)("the %s is as Kubernetes has it", (_, resource) => {
  new models[resource.kind](resource as never).validate();
});

test.each(["postgres.yaml", "embedded.yaml"] as const)(
  "%s runs this version, with settings that make sense, is probed where it responds, and finds its pods",
  (file) => {
    const { spec, pod, container } = workloadOf(file);
    expect(container?.image).toBe(`plantstore:${manifest.version}`);
    const given: { name: string; value?: string }[] = container?.env ?? [];
    const ofSecret = "postgres://db/plants";
    readSettings(Object.fromEntries(given.map(({ name, value }) => [name, value ?? ofSecret])));
    // For a Service named plantstore, Kubernetes would set PLANTSTORE_PORT to an address.
    expect(pod?.enableServiceLinks).toBe(false);

    const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
    for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
      expect(paths).toContain(probe?.httpGet?.path ?? "");
      expect(probe?.httpGet?.port).toBe(container?.ports?.[0]?.name as never);
    }
    // A restart doesn't help against a database that is away.
    expect(livenessProbe?.httpGet?.path).toBe("/healthz");
    expect(readinessProbe?.httpGet?.path).toBe("/readyz");
    expect(container?.ports?.[0]?.containerPort).toBe(Number(settings.port.fallback));

    const labels = spec?.template.metadata?.labels ?? {};
    expect(spec?.selector.matchLabels).toEqual(labels);
    for (const { kind, spec: other } of files[file]) {
      const { selector } = other as { selector?: { matchLabels?: object } };
      if (kind === "Service") expect(selector).toEqual(labels);
      if (kind === "PodDisruptionBudget") expect(selector?.matchLabels).toEqual(labels);
    }
  },
);

test("the embedded engine has one process, and its file on a volume that only it mounts", () => {
  const { spec, container } = workloadOf("embedded.yaml");
  expect(spec?.replicas).toBe(1);
  const [mount] = container?.volumeMounts ?? [];
  expect(container?.env?.[0]?.value).toStartWith(`${mount?.mountPath}/`);
  const [claim] = spec?.volumeClaimTemplates ?? [];
  expect(claim?.metadata?.name).toBe(mount?.name ?? "");
  expect(claim?.spec?.accessModes).toEqual(["ReadWriteOncePod"]);
});

test("the restore uses the image, the file and the volume of the embedded service", () => {
  const { spec } = new Pod(files["restore.yaml"][0] as never);
  const { container: service } = workloadOf("embedded.yaml");
  const [restore] = spec?.containers ?? [];
  expect(restore?.image).toBe(service?.image);
  expect(restore?.env).toEqual(service?.env?.slice(0, 1));
  expect(restore?.volumeMounts).toContainEqual(service?.volumeMounts?.[0] as never);
  const persistentVolumeClaim = { claimName: "data-plantstore-0" };
  expect(spec?.volumes).toContainEqual({ name: "data", persistentVolumeClaim });
});

test("the backup uses the database of the service, and the name that alerts know", () => {
  const job = new CronJob(files["backup.yaml"][0] as never);
  const [backup] = job.spec?.jobTemplate.spec?.template?.spec?.containers ?? [];
  expect(backup?.env).toEqual([workloadOf("postgres.yaml").container?.env?.[0] as never]);
  expect(job.metadata?.name).toBe("plantstore-backup");
});
