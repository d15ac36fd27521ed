/** URLs of PostgreSQL: what they say, which are refused, and that none of it shows a password. */
import { expect, test } from "bun:test";
import { type DatabaseUrl, maskUrl, parseUrl } from "./url.ts";

test.each<[url: string, said: Partial<DatabaseUrl>]>([
  ["POSTGRESQL://", { host: "localhost", port: 5432, tls: "prefer" }],
  ["postgres://alice:p%40ss%2Fw%25rd@db/plants", { password: "p@ss/w%rd", database: "plants" }],
  ["postgres://alice:p@ss:w,rd@localhost", { user: "alice", password: "p@ss:w,rd" }],
  ["postgres://%2Frun%2Fpostgresql/x", { host: "/run/postgresql", database: "x" }],
  ["postgres://[::1]:3/x", { host: "::1", port: 3, user: undefined }],
  [
    "postgres://db?sslmode=verify-full&sslrootcert=/etc/ca.pem&application_name=garden",
    { tls: "verify-full", rootCertificatePath: "/etc/ca.pem", applicationName: "garden" },
  ],
])("%s is understood", (url, said) => {
  expect(parseUrl(url)).toMatchObject(said);
});

test.each([
  ["postgres:/u:s3cret@h/x", "form"],
  ["postgres://u:s3cret/@h/x", "form"],
  ["postgres://u:s3cret#@h/x", "form"],
  ["postgres://u:12?s3cret=&x@h/x", "form"],
  ["postgres://u:s3cret@a:1,b/x?target_session_attrs=read-write", "several hosts"],
  ["postgres://u:s3cret%@h/x", "%25"],
  ["postgres://u:s3cret@h/x?sslmode=on", "sslmode"],
  ["postgres://u:s3cret@h/x?sslmode=disable&sslmode=require", "twice"],
  ["postgres://u:s3cret@h/x?connection_limit=5", "connection_limit"],
])("%s is refused in words that name the fault and hold no secret", (url, named) => {
  const parse = () => parseUrl(url);
  expect(parse).toThrow(expect.objectContaining({ code: "invalid-request" }));
  expect(parse).toThrow(named);
  expect(parse).not.toThrow("s3cret");
  expect(maskUrl(url)).not.toContain("s3cret");
});

test.each([
  ["postgres://u:s3cret@h/x?sslmode=require", "postgres://u@h:5432/x"],
  ["postgres://u:s3@cret@[::1]/x", "postgres://u@[::1]:5432/x"],
])("%s is shown as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});
