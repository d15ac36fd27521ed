/** What an operation is: its input, its reply, and its entry in the OpenAPI document. */
import type * as v from "valibot";
import type { Caller, Scope } from "../domain/caller.ts";
import type { ErrorCode, ValidationError } from "../domain/errors.ts";
import type { Events } from "../domain/events.ts";
import type { Plants } from "../domain/plants.ts";
import type { PlantStorage } from "../domain/ports.ts";
import type { Lists } from "./listing.ts";
import type { Parameters } from "./parameters.ts";
import type { Reservation } from "./reserved-bytes.ts";
import type { Source } from "./stream.ts";

/** What operations run on. */
export interface Context {
  readonly plants: Plants;
  readonly lists: Lists;
  readonly events: Events;
  /** See `EventFeed.open`. */
  readonly openStream: (
    request: Request,
    caller: Caller,
    token: string,
    after: number | undefined,
  ) => Promise<Reply>;
  readonly basePath: string;
  /** See `PlantStorage.version`. */
  readonly readVersion: PlantStorage["version"];
  /** Fails with `unavailable` if the storage cannot be reached. */
  readonly checkStorage: () => Promise<void>;
  readonly renderMetrics: () => Promise<string>;
  readonly renderOpenApi: () => Promise<string>;
}

/** A response without the headers that all responses share. */
export interface Reply {
  readonly status: number;
  readonly contentType?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** All headers but the request id, for a response that is sent more than once. */
  readonly builtHeaders?: Headers | undefined;
  /** Complete, or a source of chunks that are made as the client reads them. */
  readonly body?: string | Uint8Array<ArrayBuffer> | Source<string | Uint8Array> | undefined;
  /** The body goes on until the client leaves; what happens to it after the start isn't logged. */
  readonly isLive?: boolean;
  /** A page that new plants with assigned ids come after: see `GardenVersion.withoutAppends`. */
  readonly isBeforeAppends?: boolean;
}

/** An operation as the pipeline sees it. */
export interface Operation {
  readonly name: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** The path stands at the root of the host, whatever the base path. */
  readonly isAtRoot?: boolean;
  /** The scope that the token needs; absent: no token is needed. */
  readonly scope?: Scope;
  readonly parameters?: Parameters;
  /** Headers that would change the meaning of the request, and that it doesn't know. */
  readonly refusedHeaders?: readonly string[];
  readonly body?: RequestBody;
  /** Whether the response may be cached until a plant of the garden changes. */
  readonly isCacheable?: boolean;
  /** Whether monitoring calls it every few seconds, so that a success is logged as `debug`. */
  readonly isProbe?: boolean;
  readonly run: (context: Context, input: Input) => Promise<Reply>;
}

export interface Input {
  readonly caller: Caller | undefined;
  readonly token: string | undefined;
  readonly request: Request;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

export interface RequestBody<Value = unknown> {
  readonly bytesMax: number;
  /** Besides `application/json`. */
  readonly otherType?: string;
  /** Adds what is wrong to `errors`; the value counts only if nothing is. */
  readonly parse: (text: string, errors: ValidationError[], more: ParseContext) => Value;
  /** The name of one of the schemas in `openapi.ts`. */
  readonly schema: string;
  readonly example: unknown;
}

export interface ParseContext {
  /** The id in the path, if there is one. */
  readonly pathId: unknown;
  /** Resolves when it's the request's turn to go on with long work. */
  readonly turn: () => Promise<unknown>;
  readonly reserved: Reservation;
}

/** An operation that the OpenAPI document describes. */
export interface DocumentedOperation extends Operation {
  readonly summary: string;
  readonly description: string;
  readonly success: Success;
  /** What else is not a problem. */
  readonly otherSuccess?: Success;
  /** Without the problems that any operation, or any with a body, can have. */
  readonly problems?: readonly ErrorCode[];
}

export interface Success {
  /** 200 unless given. */
  readonly status?: number;
  readonly description: string;
  readonly headers?: Readonly<Record<string, HeaderDescription>>;
  /** Of its JSON; absent: it has no body. */
  readonly schema?: string;
  readonly example?: unknown;
}

export interface HeaderDescription {
  readonly description: string;
  readonly example: string | number;
  readonly pattern?: string;
  readonly required?: boolean;
}

type Values<Declared extends Parameters> = {
  readonly [Name in keyof Declared]:
    | v.InferOutput<Declared[Name]["schema"]>
    | (Declared[Name]["in"] extends "path" ? never : undefined);
};

/** An operation that needs a token. The types of its input follow from what it declares. */
export function plantOperation<const Declared extends Parameters, Body = never>(
  operation: Omit<DocumentedOperation, "run"> & {
    readonly scope: Scope;
    readonly parameters: Declared;
    readonly body?: RequestBody<Body>;
    readonly run: (
      context: Context,
      input: {
        readonly caller: Caller;
        readonly token: string;
        readonly request: Request;
        readonly parameters: Values<Declared>;
        readonly body: NonNullable<Awaited<Body>>;
      },
    ) => Promise<Reply>;
  },
): DocumentedOperation {
  // The pipeline makes `input` from what the same operation declares, so the narrower type holds.
  return operation as unknown as DocumentedOperation;
}
