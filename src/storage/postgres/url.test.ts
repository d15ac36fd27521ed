/** URLs of PostgreSQL: what they say, which are refused, and that none of it shows a password. */
import { describe, expect, test } from "bun:test";
import { type DatabaseUrl, maskUrl, parseUrl } from "./url.ts";

describe("a URL", () => {
  const plain: DatabaseUrl = {
    host: "localhost",
    port: 5432,
    user: undefined,
    password: undefined,
    database: undefined,
    tls: "prefer",
    rootCertificatePath: undefined,
    applicationName: "plantstore",
  };

  test.each<[url: string, said: Partial<DatabaseUrl>]>([
    ["postgres://", {}],
    ["postgresql://localhost", {}],
    ["POSTGRES://localhost/", {}],
    ["postgres://db/plants", { host: "db", database: "plants" }],
    ["postgres://alice:@localhost", { user: "alice" }],
    ["postgres://alice:p%40ss%2Fw%25rd@localhost", { user: "alice", password: "p@ss/w%rd" }],
    ["postgres://alice:p@ss:w,rd@localhost", { user: "alice", password: "p@ss:w,rd" }],
    ["postgres://%2Frun%2Fpostgresql/x", { host: "/run/postgresql", database: "x" }],
    ["postgres://[::1]:3/x", { host: "::1", port: 3, database: "x" }],
    [
      "postgres://localhost?sslmode=verify-full&sslrootcert=/etc/ca.pem",
      { tls: "verify-full", rootCertificatePath: "/etc/ca.pem" },
    ],
    ["postgres://localhost?application_name=garden", { applicationName: "garden" }],
  ])("%s is understood", (url, said) => {
    expect(parseUrl(url)).toEqual({ ...plain, ...said });
  });

  test.each([
    ["postgres:/u:s3cret@h/x", "form"],
    ["postgres://u:s3cret/@h/x", "form"],
    ["postgres://u:s3cret#@h/x", "form"],
    ["postgres://u:?s3cret@h/x", "form"],
    ["postgres://u:12?s3cret=&x@h/x", "form"],
    ["postgres://u:s3cret@h:65536/x", "form"],
    ["postgres://u:s3cret@::1/x", "form"],
    ["postgres://u:s3cret@a:1,b/x?target_session_attrs=read-write", "several hosts"],
    ["postgres://u:s3cret%@h/x", "%25"],
    ["postgres://u:s3cret@h/x?sslmode=on", "sslmode"],
    ["postgres://u:s3cret@h/x?sslmode=disable&sslmode=require", "twice"],
    ["postgres://u:s3cret@h/x?connection_limit=5", "connection_limit"],
    ["postgres://u:s3cret@h/x?target_session_attrs=primary", "target_session_attrs"],
  ])("%s is refused in words that name the fault and hold no secret", (url, named) => {
    const parse = () => parseUrl(url);
    expect(parse).toThrow(expect.objectContaining({ code: "invalid-request" }));
    expect(parse).toThrow(named);
    expect(parse).not.toThrow("s3cret");
    expect(maskUrl(url)).not.toContain("s3cret");
  });
});

test.each([
  ["postgres://u:s3cret@h/x?sslmode=require", "postgres://u@h:5432/x"],
  ["postgres://u:s3@cret@[::1]/x", "postgres://u@[::1]:5432/x"],
  ["postgres://%2Frun", "postgres://%2Frun:5432/"],
])("%s is shown as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});
