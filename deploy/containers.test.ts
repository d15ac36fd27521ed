/**
 * What can be checked of the image, the Compose files and the manifests where no container runs:
 * settings, names, ports, probes, rights, secrets.
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

const paths = serviceOperations.map(({ path }) => path);
const containerfile = read("Containerfile");

function read(name: string): string {
  return readFileSync(join(import.meta.dir, name), "utf8");
}

/** The service's settings in an environment. Fails if there is no such setting or value. */
function readSettings(environment: Record<string, string>) {
  const known: string[] = Object.values(settings).map((setting) => setting.environment);
  const own = Object.keys(environment).filter((name) => name.startsWith("PLANTSTORE_"));
  expect(own.filter((name) => !known.includes(name))).toEqual([]);
  return readConfig({}, environment);
}

/** What the image sets, unless a user sets something else. */
function readImageEnvironment(): Record<string, string> {
  const values = containerfile.matchAll(/(PLANTSTORE_\w+)=(\S+)/g);
  return Object.fromEntries(Array.from(values, ([, name, value]) => [name, value]));
}

describe("the image", () => {
  /** The files of this repository that it's built from. */
  function findCopiedFiles(): string[] {
    const lines = containerfile.matchAll(/^COPY (?!--)(.+) \S+$/gm);
    return Array.from(lines, ([, names = ""]) => names.split(" ")).flat();
  }

  test("has settings for a container", () => {
    const { host, port } = readSettings(readImageEnvironment());

    expect(host).toBe("0.0.0.0");
    expect(port).toBe(8080);
  });

  test("is built from files that exist", () => {
    const copied = findCopiedFiles();

    expect(copied).toContain("src");
    const missing = copied.filter((name) => !existsSync(join(import.meta.dir, "..", name)));
    expect(missing).toEqual([]);
  });

  test("is built from files that Containerfile.dockerignore lets through", () => {
    const ignored = read("Containerfile.dockerignore");

    for (const name of findCopiedFiles()) expect(ignored).toContain(`!${name}\n`);
  });

  test("doesn't run as root, and its user owns /data", () => {
    expect(containerfile).toContain("USER 65532:65532\n");
    expect(containerfile).toContain("--chown=65532:65532 /data /data\n");
  });
});

describe("compose.yaml", () => {
  const { services } = Bun.YAML.parse(read("compose.yaml")) as {
    services: Record<
      string,
      {
        environment?: Record<string, string>;
        ports?: string[];
        read_only?: boolean;
        cap_drop?: string[];
      }
    >;
  };

  describe.each(["instance-one", "instance-two"])("in %s", (name) => {
    const { environment = {}, ...instance } = services[name] ?? {};

    test("the settings are for a container", () => {
      const { host, port } = readSettings(environment);

      expect(host).toBe("0.0.0.0");
      expect(port).toBe(8080);
    });

    test("the database is the PostgreSQL beside it", () => {
      const { host, port, user, database, password } = parseUrl(
        environment.PLANTSTORE_DATABASE ?? "",
      );

      expect(host).toBe("postgres");
      expect(port).toBe(5432);
      expect(services.postgres?.environment?.POSTGRES_USER).toBe(user);
      expect(services.postgres?.environment?.POSTGRES_DB).toBe(database);
      // The password is a variable of its own.
      expect(password).toBeUndefined();
      expect(services.postgres?.environment?.POSTGRES_PASSWORD).toBe(environment.PGPASSWORD ?? "");
    });

    test("the container has few rights", () => {
      expect(instance.read_only).toBe(true);
      expect(instance.cap_drop).toEqual(["ALL"]);
    });
  });

  describe("the load balancer", () => {
    const configuration = read("haproxy/haproxy.cfg");
    const { environment = {}, ports } = services.balancer ?? {};

    test("leads to both instances", () => {
      const servers = configuration.matchAll(/^ +server \w+ "\$\{(\w+)-/gm);

      expect(Array.from(servers, ([, variable = ""]) => environment[variable])).toEqual([
        "instance-one:8080",
        "instance-two:8080",
      ]);
    });

    test("checks a path that the service has", () => {
      const [, path = ""] = /httpchk GET (\S+)/.exec(configuration) ?? [];

      expect(paths).toContain(path);
    });

    test("publishes the port that it listens on, for this machine only", () => {
      const [, port] = /^ +bind :(\d+)/m.exec(configuration) ?? [];

      expect(ports).toEqual([`127.0.0.1:\${DEMO_PORT:-8080}:${port}`]);
    });
  });

  test("every password comes from the environment, without a default", () => {
    const passwords = Object.values(services).flatMap(({ environment = {} }) =>
      Object.entries(environment)
        .filter(([name]) => /PASSWORD|SECRET|TOKEN/.test(name))
        .map(([, value]) => value),
    );

    expect(passwords.length).toBeGreaterThan(0);
    // With ":?", Compose refuses to start without the variable.
    for (const password of passwords) expect(password).toMatch(/^\$\{[A-Z_]+:\?.+\}$/);
  });
});

describe("compose-sqlite.yaml", () => {
  const { services, volumes } = Bun.YAML.parse(read("compose-sqlite.yaml")) as {
    services: {
      plantstore: {
        environment: Record<string, string>;
        volumes: string[];
        ports: string[];
        read_only: boolean;
        cap_drop: string[];
      };
    };
    volumes: Record<string, unknown>;
  };
  const service = services.plantstore;

  test("the settings make sense, and the store is in a volume that outlives the container", () => {
    const { database } = readSettings({ ...readImageEnvironment(), ...service.environment });

    const [volume = "", folder = ""] = service.volumes[0]?.split(":") ?? [];
    expect(database).toStartWith(`${folder}/`);
    expect(Object.keys(volumes)).toEqual([volume]);
  });

  test("the container has few rights", () => {
    expect(service.read_only).toBe(true);
    expect(service.cap_drop).toEqual(["ALL"]);
  });

  test("the port is published for this machine only", () => {
    expect(service.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:.*:8080$/)]);
  });
});

const models = {
  CronJob,
  Deployment,
  HorizontalPodAutoscaler,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Service,
  StatefulSet,
};

type Resource = { readonly kind: keyof typeof models; readonly [name: string]: unknown };

function readManifest(name: string): Resource[] {
  return [Bun.YAML.parse(read(`kubernetes/${name}`))].flat() as Resource[];
}

const manifests = {
  "postgres.yaml": readManifest("postgres.yaml"),
  "embedded.yaml": readManifest("embedded.yaml"),
  "backup.yaml": readManifest("backup.yaml"),
  "restore.yaml": readManifest("restore.yaml"),
};

/** What runs the service. What we read of a Deployment, a StatefulSet has, too. */
function readWorkload(file: keyof typeof manifests) {
  const workload = manifests[file].find(
    ({ kind }) => kind === "Deployment" || kind === "StatefulSet",
  );
  const { spec } = new StatefulSet(workload as never).toJSON();
  const pod = spec?.template.spec;
  return { spec, pod, container: pod?.containers[0] };
}

test.each(
  Object.entries(manifests).flatMap(([file, resources]) =>
    resources.map((resource) => ({ kind: resource.kind, file, resource })),
  ),
)("the $kind of $file is valid by the schema of Kubernetes", ({ kind, resource }) => {
  new models[kind](resource as never).validate();
});

describe.each(["postgres.yaml", "embedded.yaml"] as const)("%s", (file) => {
  const { spec, pod, container } = readWorkload(file);

  test("runs this version", () => {
    expect(container?.image).toBe(`plantstore:${manifest.version}`);
  });

  test("has settings that make sense", () => {
    const variables: { name: string; value?: string }[] = container?.env ?? [];
    const fromSecret = "postgres://db/plants";
    readSettings(
      Object.fromEntries(variables.map(({ name, value = fromSecret }) => [name, value])),
    );
  });

  test("keeps Kubernetes from setting PLANTSTORE_PORT, as it would for this Service", () => {
    expect(pod?.enableServiceLinks).toBe(false);
  });

  test.each(["startupProbe", "livenessProbe", "readinessProbe"] as const)(
    "has a %s at a path and port of the service",
    (name) => {
      const probe = container?.[name]?.httpGet;

      expect(paths).toContain(probe?.path ?? "");
      expect(probe?.port).toBe("http");
      expect(container?.ports).toEqual([{ name: "http", containerPort: 8080 }]);
    },
  );

  test("expects the service at the port that it takes by default", () => {
    expect(container?.ports?.[0]?.containerPort).toBe(Number(settings.port.fallback));
  });

  // A restart doesn't help against a database that is away.
  test("restarts an instance that isn't alive, and leaves one alone that isn't ready", () => {
    expect(container?.livenessProbe?.httpGet?.path).toBe("/healthz");
    expect(container?.readinessProbe?.httpGet?.path).toBe("/readyz");
  });

  test("finds its pods by their labels", () => {
    const labels = spec?.template.metadata?.labels ?? {};
    expect(Object.keys(labels)).not.toEqual([]);

    expect(spec?.selector.matchLabels).toEqual(labels);
    for (const { kind, spec: other } of manifests[file]) {
      const { selector } = other as { selector?: { matchLabels?: object } };
      if (kind === "Service") expect(selector).toEqual(labels);
      if (kind === "PodDisruptionBudget") expect(selector?.matchLabels).toEqual(labels);
    }
  });
});

describe("embedded.yaml", () => {
  const { spec, container } = readWorkload("embedded.yaml");

  test("has one process", () => {
    expect(spec?.replicas).toBe(1);
  });

  test("has the file on a volume that only one pod may mount", () => {
    const mount = container?.volumeMounts?.[0];
    const claim = spec?.volumeClaimTemplates?.[0];

    expect(container?.env?.[0]?.name).toBe("PLANTSTORE_DATABASE");
    expect(container?.env?.[0]?.value).toStartWith(`${mount?.mountPath}/`);
    expect(claim?.metadata?.name).toBe(mount?.name ?? "");
    expect(claim?.spec?.accessModes).toEqual(["ReadWriteOncePod"]);
  });
});

describe("restore.yaml", () => {
  const { spec } = new Pod(manifests["restore.yaml"][0] as never);
  const restore = spec?.containers[0];
  const service = readWorkload("embedded.yaml").container;

  test("uses the image of the embedded service", () => {
    expect(restore?.image).toBe(service?.image);
  });

  test("restores the file of the embedded service, on its volume", () => {
    expect(restore?.env).toEqual(service?.env?.slice(0, 1));
    expect(restore?.volumeMounts).toContainEqual(service?.volumeMounts?.[0] as never);
    // Kubernetes names a claim after its template and its pod.
    expect(spec?.volumes).toContainEqual({
      name: "data",
      persistentVolumeClaim: { claimName: "data-plantstore-0" },
    });
  });
});

describe("backup.yaml", () => {
  const job = new CronJob(manifests["backup.yaml"][0] as never);

  test("backs up the database of the service", () => {
    const backup = job.spec?.jobTemplate.spec?.template?.spec?.containers[0];

    expect(backup?.env).toEqual([readWorkload("postgres.yaml").container?.env?.[0] as never]);
  });

  test("has the name that the alerts know", () => {
    expect(job.metadata?.name).toBe("plantstore-backup");
    expect(read("monitoring/alerts.yaml")).toContain('cronjob="plantstore-backup"');
  });
});
