/** Methods, versions and targets that no good client sends. */
import { authorization, get, type HostileCase, head, host, victimId } from "./hostile-case.ts";

function method(name: string, target = "/plants"): string {
  return head(`${name} ${target} HTTP/1.1`, host, authorization);
}

function target(text: string): string {
  return method("GET", Buffer.from(text).toString("latin1"));
}

function version(text: string, ...headers: readonly string[]): string {
  return head(`GET /plants?limit=0 ${text}`, host, authorization, ...headers);
}

const methodCases: readonly HostileCase[] = [
  ["the method DELETE on the list", method("DELETE"), "405 open"],
  ["the method TRACE", method("TRACE"), "405 open"],
  ["the method CONNECT on a path", method("CONNECT"), "405 closed"],
  ["the method CONNECT on an authority", method("CONNECT", "plants.example:443"), "404 closed"],
  ["the method HEAD on a path that is not there", method("HEAD", "/nothing"), "404 open"],
  ["a method in lower case", method("get"), "closed"],
  ["a method in mixed case", method("Get"), "closed"],
  ["an unknown method", method("BREW"), "closed"],
  ["the method PRI", method("PRI"), "closed"],
  ["a method with a mark", method("GET!"), "400 closed"],
  ["a method outside ASCII", method("G\xcbT"), "400 closed"],
  ["a method with a zero byte", method("GE\0T"), "505 closed"],
  ["a method with a colon", method("GET:"), "400 closed"],
  ["a method of 1 KiB", method("X".repeat(1024)), "closed"],
  ["a method of 20 KiB", method("X".repeat(20 * 1024)), "431 closed"],
  ["an empty method", head(" /plants HTTP/1.1", host, authorization), "400 closed"],
  ["a header that overrides the method", get("X-HTTP-Method-Override: DELETE"), "200 open"],
];

const versionCases: readonly HostileCase[] = [
  ["HTTP/0.9, as it was", "GET /healthz\r\n", "505 closed"],
  ["HTTP/0.9, by name", version("HTTP/0.9"), "505 closed"],
  ["HTTP/1.0", version("HTTP/1.0"), "200 closed"],
  [
    "HTTP/1.0 that keeps the connection",
    version("HTTP/1.0", "Connection: keep-alive"),
    "200 closed",
  ],
  ["HTTP/1.0 without a host", head("GET /healthz HTTP/1.0"), "200 closed"],
  ["HTTP/1.0 without a host where a token is needed", head("GET /plants HTTP/1.0"), "400 closed"],
  [
    "HTTP/1.0 with a header of many connections",
    version("HTTP/1.0", "Connection: close, keep-alive"),
    "200 closed",
  ],
  ["HTTP/1.2", version("HTTP/1.2"), "505 closed"],
  ["HTTP/1.10", version("HTTP/1.10"), "505 closed"],
  ["HTTP/1", version("HTTP/1"), "505 closed"],
  ["HTTP/01.1", version("HTTP/01.1"), "505 closed"],
  ["HTTP/2.0", version("HTTP/2.0"), "505 closed"],
  ["HTTP/3", version("HTTP/3"), "505 closed"],
  ["HTTP/9.9", version("HTTP/9.9"), "505 closed"],
  ["a version in lower case", version("http/1.1"), "505 closed"],
  ["a version with a comma", version("HTTP/1,1"), "505 closed"],
  ["a version with a sign", version("HTTP/+1.1"), "505 closed"],
  ["a version of another protocol", version("ICAP/1.0"), "505 closed"],
  ["HTTPS as a version", version("HTTPS/1.1"), "505 closed"],
  ["the greeting of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 closed"],
];

const targetCases: readonly HostileCase[] = [
  ["the absolute form", target("http://plants.example/plants?limit=0"), "200 open"],
  ["the absolute form of another host", target("http://other.example/plants?limit=0"), "200 open"],
  [
    "the absolute form with a user",
    target("http://user:secret@plants.example/plants?limit=0"),
    "200 open",
  ],
  ["the absolute form without a path", target("http://plants.example"), "200 open"],
  ["the absolute form with a query only", target("http://plants.example?limit=0"), "400 open"],
  ["the absolute form of HTTPS", target("https://plants.example/plants?limit=0"), "200 open"],
  ["the absolute form in capitals", target("HTTP://plants.example/plants?limit=0"), "200 open"],
  ["the form of a file", target("file:///etc/passwd"), "400 closed"],
  ["the form of a script", target("javascript:alert(1)"), "400 closed"],
  ["the authority form", target("plants.example:80"), "400 closed"],
  ["an asterisk", target("*"), "400 closed"],
  ["an asterisk for OPTIONS", method("OPTIONS", "*"), "400 closed"],
  ["two slashes", target("//plants"), "404 open"],
  ["two slashes and a host", target("//other.example/plants?limit=0"), "404 open"],
  ["an encoded slash", target("/%2fplants"), "404 open"],
  ["a slash in an id", method("DELETE", `/plants/${victimId}/`), "404 open"],
  ["an encoded id", method("DELETE", `/plants/%3${victimId}`), "400 open"],
  ["an id with a zero byte", method("DELETE", `/plants/${victimId}%00`), "400 open"],
  ["an id with a parameter", method("DELETE", `/plants/${victimId};a=b`), "400 open"],
  ["an id with spaces", method("DELETE", `/plants/${victimId}%20`), "400 open"],
  ["an encoded zero byte", target("/plants%00"), "404 open"],
  ["a zero byte", target("/plants\0"), "505 closed"],
  ["dots that lead up", target("/../../etc/passwd"), "404 open"],
  ["dots that lead to a path", target("/healthz/../plants?limit=0"), "200 open"],
  ["encoded dots", target("/healthz/%2e%2e/plants?limit=0"), "200 open"],
  ["twice encoded dots", target("/healthz/%252e%252e/plants?limit=0"), "404 open"],
  ["dots in the files of the pages", target("/assets/../../../package.json"), "404 open"],
  ["encoded dots in the files of the pages", target("/assets/..%2f..%2fpackage.json"), "404 open"],
  ["a backslash", target("\\plants?limit=0"), "400 closed"],
  ["backslashes that lead up", target("/healthz\\..\\plants?limit=0"), "200 open"],
  ["a fragment", target("/plants?limit=0#top"), "400 open"],
  ["a fragment and a query behind it", target("/plants#?limit=0"), "404 open"],
  ["no target", head("GET  HTTP/1.1", host, authorization), "400 closed"],
  ["a query alone", target("?limit=0"), "400 closed"],
  ["a path without a slash", target("plants?limit=0"), "400 closed"],
  ["an encoded name of a parameter", target("/plants?%6cimit=0"), "200 open"],
  ["bytes that are no UTF-8, encoded", target("/plants?limit=%ff%fe"), "400 open"],
  ["UTF-8 of too many bytes, encoded", target("/plants?limit=%c0%b0"), "400 open"],
  ["parameters set apart by a semicolon", target("/plants?limit=0;after=1"), "400 open"],
  ["bytes that are no UTF-8", method("GET", "/plants\xff\xfe"), "404 open"],
  ["a control character", target("/plants\x01"), "505 closed"],
  ["a delete character", target("/plants\x7f"), "404 open"],
  ["an encoded line end", target("/plants?limit=0%0d%0aX:%20y"), "400 open"],
];

export const requestLineCases = [...methodCases, ...versionCases, ...targetCases];
