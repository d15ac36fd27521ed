/** Fastify and better-sqlite3, as you would write it by hand, with schemas. Runs on Node. */
import Database from "better-sqlite3";
import Fastify from "fastify";
import { openPlants, readBearer } from "./plants-database.mjs";

const [port, databasePath] = process.argv.slice(2);
const plants = openPlants(new Database(databasePath));

const plant = {
  type: "object",
  required: ["name", "tag"],
  properties: { name: { type: "string" }, tag: { type: "string" } },
};
const newPlant = {
  type: "object",
  required: ["name"],
  additionalProperties: false,
  properties: {
    name: { type: "string", minLength: 1, maxLength: 200 },
    tag: { type: "string", maxLength: 100, default: "" },
  },
};
const listQuery = {
  type: "object",
  additionalProperties: false,
  properties: {
    limit: { type: "integer", minimum: 0, maximum: 2147483647 },
    after: { type: "integer" },
  },
};
const plantId = { type: "object", properties: { id: { type: "integer" } } };

const app = Fastify({ logger: false });
app.get("/readyz", () => "ok");
app.register(async (routes) => {
  routes.decorateRequest("garden", "");
  routes.addHook("onRequest", async (request, reply) => {
    request.garden = plants.findGarden(readBearer(request.headers.authorization));
    if (request.garden !== undefined) return;
    reply.header("WWW-Authenticate", 'Bearer realm="plants"');
    return reply.code(401).send({ error: "A valid token is needed." });
  });
  routes.get(
    "/plants",
    { schema: { querystring: listQuery, response: { 200: { type: "array", items: plant } } } },
    async ({ garden, query }) => plants.list(garden, query.limit, query.after),
  );
  routes.post(
    "/plants",
    { schema: { body: newPlant, response: { 201: plant } } },
    async ({ garden, body: { name, tag } }, reply) => {
      const id = plants.add(garden, name, tag);
      reply.code(201).header("Location", `/plants/${id}`);
      return { name, tag };
    },
  );
  routes.delete("/plants/:id", { schema: { params: plantId } }, async (request, reply) => {
    if (plants.remove(request.garden, request.params.id)) return reply.code(204).send();
    return reply.code(404).send({ error: "There is no such plant." });
  });
});
await app.listen({ host: "127.0.0.1", port: Number(port) });
