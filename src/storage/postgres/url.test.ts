/** URLs of PostgreSQL: what they say, which are refused, and that no password is ever shown. */
import { describe, expect, test } from "bun:test";
import { maskUrl, parseUrl } from "./url.ts";

describe("a URL", () => {
  test("without any part means localhost, port 5432, and TLS if the server offers it", () => {
    expect(parseUrl("POSTGRESQL://")).toMatchObject({
      host: "localhost",
      port: 5432,
      tls: "prefer",
    });
  });

  test("can hold percent-encoded characters", () => {
    expect(parseUrl("postgres://alice:p%40ss%2Fw%25rd@db/plants")).toMatchObject({
      password: "p@ss/w%rd",
      database: "plants",
    });
  });

  test("can hold @, : and commas in its password as they are", () => {
    expect(parseUrl("postgres://alice:p@ss:w,rd@localhost")).toMatchObject({
      user: "alice",
      password: "p@ss:w,rd",
    });
  });

  test("can name the folder of a Unix socket", () => {
    expect(parseUrl("postgres://%2Frun%2Fpostgresql/x")).toMatchObject({
      host: "/run/postgresql",
      database: "x",
    });
  });

  test("can name an IPv6 address and a port, without a user", () => {
    expect(parseUrl("postgres://[::1]:3/x")).toMatchObject({
      host: "::1",
      port: 3,
      user: undefined,
    });
  });

  test("can choose TLS, its certificates and the application's name", () => {
    const parameters = "sslmode=verify-full&sslrootcert=/etc/ca.pem&application_name=garden";
    expect(parseUrl(`postgres://db?${parameters}`)).toMatchObject({
      tls: "verify-full",
      rootCertificatePath: "/etc/ca.pem",
      applicationName: "garden",
    });
  });
});

describe.each([
  { url: "postgres:/u:s3cret@h/x", reason: "not of the form" },
  { url: "postgres://u:s3cret/@h/x", reason: "not of the form" },
  { url: "postgres://u:s3cret#@h/x", reason: "not of the form" },
  { url: "postgres://u:12?s3cret=&x@h/x", reason: "not of the form" },
  {
    url: "postgres://u:s3cret@a:1,b/x?target_session_attrs=read-write",
    reason: "several hosts",
  },
  { url: "postgres://u:s3cret%@h/x", reason: "(%25 is a %)" },
  { url: "postgres://u:s3cret@h/x?sslmode=on", reason: "sslmode must be one of" },
  {
    url: "postgres://u:s3cret@h/x?sslmode=disable&sslmode=require",
    reason: '"sslmode" comes twice',
  },
  {
    url: "postgres://u:s3cret@h/x?connection_limit=5",
    reason: '"connection_limit" is not known',
  },
])("$url", ({ url, reason }) => {
  const parse = () => parseUrl(url);

  test("is refused with the reason", () => {
    expect(parse).toThrow(expect.objectContaining({ code: "invalid-request" }));
    expect(parse).toThrow(reason);
  });

  test("is refused without showing its password", () => {
    expect(parse).not.toThrow("s3cret");
  });

  test("is shown without its password", () => {
    expect(maskUrl(url)).not.toContain("s3cret");
  });
});

test.each([
  ["postgres://u:s3cret@h/x?sslmode=require", "postgres://u@h:5432/x"],
  ["postgres://u:s3@cret@[::1]/x", "postgres://u@[::1]:5432/x"],
])("%s is shown as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});
