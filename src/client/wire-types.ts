/** What travels, from the OpenAPI document. Generated: `npm run generate:client-types`. */

export type PlantDraft = {
  /** 1 to 200 Unicode code points, not only white space, kept as sent. */
  readonly name: string;
  /** 0 to 100 Unicode code points, kept as sent. Empty if left out. */
  readonly tag?: string | undefined;
  /** Identifies the plant in its garden. Exact over the whole signed 64-bit range. */
  readonly id?: bigint | undefined;
};

export type Plant = {
  /** Identifies the plant in its garden. Exact over the whole signed 64-bit range. */
  readonly id?: bigint | undefined;
  /** 1 to 200 Unicode code points, not only white space, kept as sent. */
  readonly name: string;
  /** 0 to 100 Unicode code points, kept as sent. Empty if left out. */
  readonly tag: string;
};

export type TagCount = {
  /** Empty for plants without a tag. */
  readonly tag: string;
  /** How many plants have the tag. */
  readonly plants: bigint;
};

export type Me = {
  readonly user: string;
  readonly garden: string;
  readonly scope: "read" | "write";
  /** Exactly how many plants the garden has now. */
  readonly plants: bigint;
  /** The number of the garden's last event, 0 before the first. Absent: off. */
  readonly lastEvent?: bigint | undefined;
  /** Absent: never. */
  readonly expiresAt?: string | undefined;
};

export type Problem = {
  readonly type:
    | "urn:plantstore:problem:invalid-request"
    | "urn:plantstore:problem:unauthenticated"
    | "urn:plantstore:problem:forbidden"
    | "urn:plantstore:problem:not-found"
    | "urn:plantstore:problem:method-not-allowed"
    | "urn:plantstore:problem:conflict"
    | "urn:plantstore:problem:gone"
    | "urn:plantstore:problem:precondition-failed"
    | "urn:plantstore:problem:too-large"
    | "urn:plantstore:problem:unsupported-media-type"
    | "urn:plantstore:problem:idempotency-mismatch"
    | "urn:plantstore:problem:rate-limited"
    | "urn:plantstore:problem:internal"
    | "urn:plantstore:problem:unavailable"
    | "urn:plantstore:problem:storage-full";
  readonly title: string;
  readonly status:
    | 400
    | 401
    | 403
    | 404
    | 405
    | 409
    | 410
    | 412
    | 413
    | 415
    | 422
    | 429
    | 500
    | 503
    | 507;
  /** What to fix. Safe to show. */
  readonly detail: string;
  readonly requestId: string;
  /** With status 400: every validation error, and where it is. */
  readonly errors?:
    | readonly {
        /** A JSON Pointer into the body. */
        readonly pointer?: string | undefined;
        /** The name of a path or query parameter. */
        readonly parameter?: string | undefined;
        /** The name of a header. */
        readonly header?: string | undefined;
        readonly detail: string;
      }[]
    | undefined;
};
