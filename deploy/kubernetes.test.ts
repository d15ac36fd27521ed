/**
 * What can be checked of the manifests where no cluster can run: schema, settings, probes, rights,
 * names.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { CronJob } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { PersistentVolumeClaim, Pod, Service } from "kubernetes-models/v1";
import manifest from "../package.json" with { type: "json" };
import { readConfig, settings } from "../src/config.ts";
import { serviceOperations } from "../src/http/operations.ts";

const models = { Deployment, StatefulSet, HorizontalPodAutoscaler, PodDisruptionBudget, Service };

type Resource = { readonly kind: keyof typeof models; readonly [name: string]: unknown };

function read(name: string): Resource[] {
  const text = readFileSync(join(import.meta.dir, "kubernetes", name), "utf8");
  return Bun.YAML.parse(text) as Resource[];
}

const files = { "postgres.yaml": read("postgres.yaml"), "embedded.yaml": read("embedded.yaml") };
const all = Object.entries(files).flatMap(([file, resources]) =>
  resources.map((resource) => [`${resource.kind} of ${file}`, resource] as const),
);

function workloadOf(resources: readonly Resource[]) {
  const found = resources.find(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
  return new StatefulSet(found as never).toJSON();
}

test.each(all)("the %s is as Kubernetes has it", (_, resource) => {
  new models[resource.kind](resource as never).validate();
});

describe.each(Object.entries(files))("%s", (_, resources) => {
  const { spec } = workloadOf(resources);
  const pod = spec?.template.spec;
  const container = pod?.containers[0];
  const labels = spec?.template.metadata?.labels;

  test("has only settings that there are, and runs this version", () => {
    const known: string[] = Object.values(settings).map(({ environment }) => environment);
    const given: { name: string; value?: string }[] = container?.env ?? [];
    expect(given.filter(({ name }) => !known.includes(name))).toEqual([]);
    const ofSecret = "postgres://db/plants";
    readConfig({}, Object.fromEntries(given.map(({ name, value }) => [name, value ?? ofSecret])));
    expect(container?.image).toBe(`plantstore:${manifest.version}`);
  });

  test("asks paths that there are, on the port that is served", () => {
    const paths = serviceOperations.map(({ path }) => path);
    const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
    for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
      expect(paths).toContain(probe?.httpGet?.path ?? "");
      expect(probe?.httpGet?.port).toBe(container?.ports?.[0]?.name as never);
    }
    // A start may take ten minutes.
    const { periodSeconds = 10, failureThreshold = 3 } = startupProbe ?? {};
    expect(periodSeconds * failureThreshold).toBe(600);
    // A database that is away must not have the instances killed.
    expect(livenessProbe?.httpGet?.path).toBe("/healthz");
    expect(readinessProbe?.httpGet?.path).toBe("/readyz");
    expect(container?.ports?.[0]?.containerPort).toBe(Number(settings.port.fallback));
  });

  test("has no right that it does not need", () => {
    expect(pod?.automountServiceAccountToken).toBe(false);
    // For a Service named plantstore, Kubernetes would set PLANTSTORE_PORT to an address.
    expect(pod?.enableServiceLinks).toBe(false);
    expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container?.resources?.limits).toHaveProperty("memory");
  });

  test("selects its own pods everywhere", () => {
    expect(spec?.selector.matchLabels).toEqual(labels ?? {});
    for (const { kind, spec: other } of resources) {
      const { selector } = other as { selector?: { matchLabels?: object } };
      if (kind === "Service") expect(selector).toEqual(labels ?? {});
      if (kind === "PodDisruptionBudget") expect(selector?.matchLabels).toEqual(labels ?? {});
    }
  });
});

test("the embedded engine has one process, and its file on a volume that only it mounts", () => {
  const { spec } = workloadOf(files["embedded.yaml"]);
  expect(spec?.replicas).toBe(1);
  const [mount] = spec?.template.spec?.containers[0]?.volumeMounts ?? [];
  const database = spec?.template.spec?.containers[0]?.env?.[0]?.value ?? "";
  expect(database.startsWith(`${mount?.mountPath}/`)).toBe(true);
  const [claim] = spec?.volumeClaimTemplates ?? [];
  expect(claim?.metadata?.name).toBe(mount?.name ?? "");
  expect(claim?.spec?.accessModes).toEqual(["ReadWriteOncePod"]);
});

test("the restore uses the image, the rights, the file and the volume of the embedded service", () => {
  const text = readFileSync(join(import.meta.dir, "kubernetes/restore.yaml"), "utf8");
  const pod = new Pod(Bun.YAML.parse(text) as never);
  pod.validate();
  const { spec: workload } = workloadOf(files["embedded.yaml"]);
  const [service] = workload?.template.spec?.containers ?? [];
  const { spec } = pod;
  const [restore] = spec?.containers ?? [];
  expect(restore?.image).toBe(service?.image);
  expect(restore?.env).toEqual(service?.env?.slice(0, 1));
  expect(restore?.volumeMounts).toContainEqual(service?.volumeMounts?.[0] as never);
  for (const container of [restore, ...(spec?.initContainers ?? [])]) {
    expect(container?.securityContext).toEqual(service?.securityContext);
  }
  expect(spec?.securityContext).toEqual(workload?.template.spec?.securityContext);
  expect(spec?.volumes).toContainEqual({
    name: "data",
    persistentVolumeClaim: { claimName: "data-plantstore-0" },
  });
});

test("the backup uses the rights and the database of the service", () => {
  const [cronJob, claim] = read("backup.yaml");
  const job = new CronJob(cronJob as never);
  job.validate();
  new PersistentVolumeClaim(claim as never).validate();
  const { spec: workload } = workloadOf(files["postgres.yaml"]);
  const [service] = workload?.template.spec?.containers ?? [];
  const { spec } = job.spec?.jobTemplate.spec?.template ?? {};
  const [backup] = spec?.containers ?? [];
  expect(backup?.env).toEqual([service?.env?.[0] as never]);
  expect(backup?.securityContext).toEqual(service?.securityContext);
  expect(spec?.securityContext).toEqual(workload?.template.spec?.securityContext);
  // Alerts and the runbook know it by this name.
  expect(job.metadata?.name).toBe("plantstore-backup");
});

test("the autoscaler decides the number of instances, and the budget leaves one", () => {
  const [deployment, , budget, scaler] = files["postgres.yaml"];
  expect(deployment?.spec).not.toHaveProperty("replicas");
  expect(budget?.spec).toMatchObject({ minAvailable: 1 });
  expect(scaler?.spec).toMatchObject({ scaleTargetRef: { name: "plantstore" }, minReplicas: 2 });
});
