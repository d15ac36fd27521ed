/** One answer of every kind, for the rules that hold for all answers or for all problems. */
import type { Answer } from "./answer.ts";
import type { Probe } from "./probe.ts";

export interface Picture {
  readonly answer: Answer;
  /** The code of the problem; absent if it is none. */
  readonly code?: string;
  readonly status: number;
  /** Whether a token decides what the answer is. */
  readonly dependsOnToken: boolean;
}

const galleries = new WeakMap<Probe, Promise<readonly Picture[]>>();

/** Made once for a run, by whichever rule asks first. */
export function picturesOf(probe: Probe): Promise<readonly Picture[]> {
  const pictures = galleries.get(probe) ?? makeGallery(probe);
  galleries.set(probe, pictures);
  return pictures;
}

async function makeGallery(probe: Probe): Promise<readonly Picture[]> {
  const { garden } = probe;
  const draft = probe.draft("gallery");
  const key = { "Idempotency-Key": crypto.randomUUID() };
  const pictures: Picture[] = [];
  const show = (status: number, answer: Answer, code?: string) =>
    pictures.push({ status, answer, dependsOnToken: true, ...(code !== undefined && { code }) });
  const showOpen = (status: number, answer: Answer, code?: string) =>
    pictures.push({ status, answer, dependsOnToken: false, ...(code !== undefined && { code }) });

  show(201, await garden.create(draft, key));
  show(200, await garden.listBehind(draft.id - 1n));
  show(200, await garden.ask("HEAD /plants?limit=1"));
  show(400, await garden.ask("GET /plants?limit=x"), "invalid-request");
  show(400, await garden.create({ ...draft, name: null }), "invalid-request");
  show(401, await probe.askOpenly("GET /plants"), "unauthenticated");
  if (probe.hasReader) show(403, await probe.reader.create(draft), "forbidden");
  show(404, await garden.delete(probe.freshId()), "not-found");
  show(409, await garden.create(draft), "conflict");
  const length = { "Content-Length": String(2 ** 20) };
  show(413, await garden.ask("POST /plants", { body: "{", headers: length }), "too-large");
  const type = { "Content-Type": "text/plain" };
  show(415, await garden.create(draft, type), "unsupported-media-type");
  show(422, await garden.create({ ...draft, tag: "other" }, key), "idempotency-mismatch");
  show(204, await garden.delete(draft.id));
  showOpen(404, await probe.askOpenly("GET /nothing-here"), "not-found");
  showOpen(405, await probe.askOpenly("PUT /plants"), "method-not-allowed");
  showOpen(204, await probe.askOpenly("OPTIONS /plants"));
  showOpen(200, await probe.askOpenly("GET /openapi.json"));
  showOpen(200, await probe.askOpenly("GET /healthz"));
  return pictures;
}

/** Each kind of answer in words, such as `GET /plants → 401`. */
export function titleOf({ answer }: Picture): string {
  const [line = ""] = answer.request.split("\n");
  return `${line.replace(/ HTTP\/1\.1$/, "")} → ${answer.status}`;
}
