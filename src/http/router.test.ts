/** From a path to its route: exact paths, one variable part, a base path, and what Allow says. */
import { describe, expect, test } from "bun:test";
import { operations } from "./operations.ts";
import { createRouter } from "./router.ts";

const find = createRouter("", operations);

test.each([
  ["/plants", "/plants", ""],
  ["/plants/7", "/plants/{id}", "7"],
  ["/plants/-7", "/plants/{id}", "-7"],
  ["/plants/%31", "/plants/{id}", "%31"],
  ["/plants/%zz", "/plants/{id}", "%zz"],
  ["/healthz", "/healthz", ""],
  ["/readyz", "/readyz", ""],
  ["/metrics", "/metrics", ""],
  ["/openapi.json", "/openapi.json", ""],
])("%s leads to %s with the variable %p as it was sent", (path, route, variable) => {
  const match = find(path);
  expect(match?.route.path).toBe(route);
  expect(match?.variable).toBe(variable);
});

test.each([
  "",
  "/plants/",
  "/plants/1/2",
  "/plants/1/",
  "//plants",
  "/Plants",
  "/plantsx",
  "/plant",
  "/healthz/",
  "/plants/{id}/x",
  "/constructor",
  "/%zz",
  "plants",
])("%p leads nowhere", (path) => {
  expect(find(path)).toBeUndefined();
});

test.each([
  ["/plants", "GET, HEAD, POST, OPTIONS", true],
  ["/plants/7", "DELETE, OPTIONS", true],
  ["/healthz", "GET, HEAD", false],
  ["/openapi.json", "GET, HEAD", false],
])("%s allows %s", (path, allow, takesOptions) => {
  const route = find(path)?.route;
  expect(route?.allow).toBe(allow);
  expect(route?.takesOptions).toBe(takesOptions);
});

test("HEAD runs what GET runs", () => {
  const methods = find("/plants")?.route.operations;
  expect(methods?.get("HEAD")).toBe(methods?.get("GET"));
  expect(methods?.get("POST")?.name).toBe("createPlant");
  expect(methods?.get("PUT")).toBeUndefined();
});

describe("with a base path", () => {
  const findBelow = createRouter("/garden/v1", operations);

  test("finds the same routes below it", () => {
    expect(findBelow("/garden/v1/plants")?.route.path).toBe("/plants");
    expect(findBelow("/garden/v1/plants/7")?.variable).toBe("7");
    expect(findBelow("/garden/v1/healthz")?.route.path).toBe("/healthz");
  });

  test.each(["/plants", "/plants/7", "/garden/v1", "/garden/v1plants", "/garden/v2/plants"])(
    "finds nothing at %s",
    (path) => {
      expect(findBelow(path)).toBeUndefined();
    },
  );
});
