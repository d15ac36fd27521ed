/** Hono and bun:sqlite, as you would write it by hand, with its bearer and valibot middleware. */
import { Database } from "bun:sqlite";
import { vValidator } from "@hono/valibot-validator";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import * as v from "valibot";
import { openPlants } from "./plants-database.mjs";

const [port, databasePath] = process.argv.slice(2);
const plants = openPlants(new Database(databasePath));

const integer = v.pipe(v.string(), v.regex(/^-?\d+$/), v.transform(Number));
const listQuery = v.strictObject({
  limit: v.optional(v.pipe(integer, v.minValue(0), v.maxValue(2147483647))),
  after: v.optional(integer),
});
const newPlant = v.strictObject({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  tag: v.optional(v.pipe(v.string(), v.maxLength(100)), ""),
});
const plantId = v.object({ id: integer });

const app = new Hono();
app.get("/readyz", (context) => context.text("ok"));
app.use(
  "/plants/*",
  bearerAuth({
    realm: "plants",
    verifyToken(token, context) {
      const garden = plants.findGarden(token);
      context.set("garden", garden);
      return garden !== undefined;
    },
  }),
);
app.get("/plants", vValidator("query", listQuery), (context) => {
  const { limit, after } = context.req.valid("query");
  return context.json(plants.list(context.get("garden"), limit, after));
});
app.post("/plants", vValidator("json", newPlant), (context) => {
  const { name, tag } = context.req.valid("json");
  const id = plants.add(context.get("garden"), name, tag);
  return context.json({ name, tag }, 201, { Location: `/plants/${id}` });
});
app.delete("/plants/:id", vValidator("param", plantId), (context) => {
  const { id } = context.req.valid("param");
  if (plants.remove(context.get("garden"), id)) return context.body(null, 204);
  return context.json({ error: "There is no such plant." }, 404);
});

Bun.serve({ hostname: "127.0.0.1", port: Number(port), fetch: app.fetch });
