/**
 * The same three operations on Hono and bun:sqlite, as you would write them by hand: its bearer
 * middleware, its validator with valibot, one durable commit per write. Runs on Bun.
 */
import { vValidator } from "@hono/valibot-validator";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import * as v from "valibot";
import { openPlants } from "./plants-database.ts";

const [port, databasePath, option] = process.argv.slice(2);
const plants = openPlants(databasePath);
if (option === "--migrate-only") {
  plants.close();
  process.exit(0);
}

const integer = v.pipe(v.string(), v.regex(/^-?\d+$/), v.transform(Number));
const listSchema = v.strictObject({
  limit: v.optional(v.pipe(integer, v.minValue(0), v.maxValue(2147483647))),
  after: v.optional(integer),
});
const plantSchema = v.strictObject({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  tag: v.optional(v.pipe(v.string(), v.maxLength(100)), ""),
});
const idSchema = v.object({ id: integer });

const app = new Hono();

app.get("/healthz", (context) => context.text("ok"));

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

app.get("/plants", vValidator("query", listSchema), (context) => {
  const { limit, after } = context.req.valid("query");
  return context.json(plants.list(context.get("garden"), limit, after));
});

app.post("/plants", vValidator("json", plantSchema), (context) => {
  const { name, tag } = context.req.valid("json");
  const id = plants.add(context.get("garden"), name, tag);
  return context.json({ name, tag }, 201, { Location: `/plants/${id}` });
});

app.delete("/plants/:id", vValidator("param", idSchema), (context) => {
  const { id } = context.req.valid("param");
  if (plants.remove(context.get("garden"), id)) return context.body(null, 204);
  return context.json({ error: "There is no such plant." }, 404);
});

const server = Bun.serve({ hostname: "127.0.0.1", port: Number(port), fetch: app.fetch });
process.once("SIGTERM", async () => {
  await server.stop();
  plants.close();
  process.exit(0);
});
