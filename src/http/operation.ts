/** What an operation is: its input, its reply, and its entry in the OpenAPI document. */
import type * as v from "valibot";
import type { Caller, Scope } from "../domain/caller.ts";
import type { ErrorCode } from "../domain/errors.ts";
import type { Events } from "../domain/events.ts";
import type { Plants } from "../domain/plants.ts";
import type { Reservation } from "../limits/reserved-bytes.ts";
import type { MaybePromise } from "../shared/promises.ts";
import type { EventFeed } from "./event-feed.ts";
import type { SentFile } from "./file-reply.ts";
import type { HeaderDescription } from "./json-schema.ts";
import type { Lists } from "./listing.ts";
import type { Parameters } from "./parameters.ts";
import type { Reply } from "./reply.ts";
import type { Checked } from "./validation.ts";

export const jsonType = "application/json";

/** What operations run on. */
export interface Application {
  readonly basePath: string;
  readonly plants: Plants;
  readonly lists: Lists;
  readonly events: Events;
  readonly feed: EventFeed;
  /** Fails with `unavailable` if the storage cannot be reached. */
  readonly checkStorage: () => Promise<void>;
  readonly renderMetrics: () => Promise<string>;
  readonly loadOpenApi: () => Promise<SentFile>;
}

/** An exchange as an operation sees it. */
export interface Call {
  readonly service: Application;
  readonly request: Request;
  readonly caller: Caller | undefined;
  readonly token: string | undefined;
  /** The memory that it takes until it ends. */
  readonly reserved: Reservation;
  /** Resolves when it may go on with long work. */
  turn(): Promise<unknown>;
}

/** The call of an operation that needs a token. */
export type IdentifiedCall = Call & { readonly caller: Caller; readonly token: string };

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
  /** Whether pages of other origins may send a token here, though none is needed. */
  readonly hasPreflight?: boolean;
  /** Whether the response may be cached until a plant of the garden changes. */
  readonly isCacheable?: boolean;
  /** Whether monitoring calls it every few seconds, so that a success is logged as `debug`. */
  readonly isProbe?: boolean;
  readonly run: (call: Call, input: Input) => MaybePromise<Reply>;
}

/** What the client sent, found valid. */
export interface Input {
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

export interface RequestBody<Value = unknown> {
  readonly bytesMax: number;
  /** Besides `application/json`. */
  readonly otherType?: string;
  /** `pathId`: the id in the path, if there is one. */
  readonly parse: (
    text: string,
    call: Call,
    pathId: unknown,
  ) => Checked<Value> | Promise<Checked<Value>>;
  /** The name of one of the schemas of the operations' pages. */
  readonly schema: string;
  readonly example: unknown;
}

/** The types of a body, as `Accept` and `Accept-Patch` list them. */
export function acceptedTypes({ otherType }: Pick<RequestBody, "otherType">): string {
  return otherType === undefined ? jsonType : `${jsonType}, ${otherType}`;
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
  /** The schema of what it is as a stream of server-sent events, if a client prefers that. */
  readonly streamSchema?: string;
}

type Values<Declared extends Parameters> = {
  readonly [Name in keyof Declared]:
    | v.InferOutput<Declared[Name]["schema"]>
    | (Declared[Name]["in"] extends "path" ? never : undefined);
};

/** An operation that needs a token. The types of its input follow from what it declares. */
export function plantOperation<const Declared extends Parameters, Body = never>(
  operation: Omit<DocumentedOperation, "run" | "body"> & {
    readonly scope: Scope;
    readonly parameters: Declared;
    readonly body?: RequestBody<Body>;
    readonly run: (
      call: IdentifiedCall,
      input: { readonly parameters: Values<Declared>; readonly body: NonNullable<Body> },
    ) => MaybePromise<Reply>;
  },
): DocumentedOperation {
  // The pipeline reads the input that the same operation declares, so the narrower type holds.
  return operation as unknown as DocumentedOperation;
}
