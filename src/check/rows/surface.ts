/** Surface: which paths there are, and which methods they take. */
import { each, open, rowsOf } from "../row.ts";

const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz", "/metrics"];

const allowOfPlants = { headers: { Allow: new Set(["GET", "HEAD", "POST", "OPTIONS"]) } };
const allowOfPlant = { headers: { Allow: new Set(["DELETE", "OPTIONS"]) } };

export const surfaceRows = rowsOf("surface", {
  "GET /plants is 200": ["GET /plants?limit=1", 200],
  "HEAD /plants is as GET, without a body": [
    ["GET /plants?limit=1", 200],
    ["HEAD /plants?limit=1", { same: ["status", "Content-Type"] }],
  ],
  "GET and HEAD of a public path need no token, and are alike but for the body": each(
    publicPaths,
    [open("GET {each}"), 200],
    [open("HEAD {each}"), { same: ["status", "Content-Type"] }],
  ),
  "any other path is 404": each(
    [
      ...["/nothing-here", "/plants/", "/plants/1/2", "/Plants", "/plants;a=1", "/plants%2F1"],
      ...["/v0/plants", "/docs/", "/assets", "/assets/", "/assets/nothing.js"],
    ],
    ["GET {each}", 404],
  ),
  // Not DELETE: a service that takes it might take it for all plants.
  "another method on /plants is 405, with Allow": each(
    ["PUT", "PATCH"],
    [open("{each} /plants"), { status: 405, ...allowOfPlants }],
  ),
  "another method on /plants/{id} is 405, with Allow": each(
    ["GET", "POST", "PUT", "PATCH"],
    [open("{each} /plants/{1}"), { status: 405, ...allowOfPlant }],
  ),
  "another method on a public path is 405, with Allow": each(
    publicPaths.flatMap((path) => ["POST", "PUT", "OPTIONS"].map((method) => `${method} ${path}`)),
    [open("{each}"), { status: 405, headers: { Allow: new Set(["GET", "HEAD"]) } }],
  ),
  "OPTIONS needs no token, and lists in Allow what a path takes": [
    [open("OPTIONS /plants"), { status: 204, ...allowOfPlants }],
    [open("OPTIONS /plants/{1}"), { status: 204, ...allowOfPlant }],
  ],
});
