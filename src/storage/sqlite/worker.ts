/// <reference lib="webworker" />
/** The thread that commits, so that a slow disk delays writers only. It opens the file once. */
import { PlantStoreError } from "../../domain/errors.ts";
import { connect } from "./connection.ts";
import { translate } from "./failure.ts";
import { packOutcomes, unpackWrites } from "./wire.ts";
import type { Reply, WorkerRequest } from "./write-thread.ts";
import { createWriter, type Writer } from "./writer.ts";

declare const self: Worker;

let writer: Writer | undefined;
let close = () => {};

function open(path: string): void {
  const database = connect(path);
  writer = createWriter(database);
  close = () => database.close();
}

function perform(request: WorkerRequest): unknown {
  if (request.kind === "open") return open(request.path);
  if (request.kind === "close") return close();
  if (!writer) throw new PlantStoreError("unavailable", "The storage is not open.");
  switch (request.kind) {
    case "apply":
      return packOutcomes(writer.apply(unpackWrites(request.writes)));
    case "forget-keys":
      return writer.forgetKeys(request.nowMs);
    case "note-token-uses":
      return writer.noteTokenUses(request.uses);
  }
}

self.onmessage = (event: MessageEvent<WorkerRequest>) => {
  let reply: Reply;
  try {
    reply = { result: perform(event.data) };
  } catch (thrown) {
    const error = translate(thrown);
    reply = {
      code: error instanceof PlantStoreError ? error.code : undefined,
      message: error instanceof Error ? error.message : String(error),
      cause: error instanceof PlantStoreError ? String(error.cause) : undefined,
    };
  }
  self.postMessage(reply);
};
