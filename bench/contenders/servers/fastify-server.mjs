/**
 * The same three operations on Fastify and better-sqlite3, as you would write them by hand: schemas,
 * prepared statements, a token looked up by its hash, one durable commit per write. Runs on Node.
 */
import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import Fastify from "fastify";

const [port, databasePath, option] = process.argv.slice(2);

const database = new Database(databasePath);
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
database.exec(`
  CREATE TABLE IF NOT EXISTS plants (
    garden TEXT NOT NULL,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (garden, id)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT NOT NULL PRIMARY KEY,
    garden TEXT NOT NULL
  ) WITHOUT ROWID;
`);
if (option === "--migrate-only") {
  database.close();
  process.exit(0);
}

const findGarden = database.prepare("SELECT garden FROM tokens WHERE hash = ?").pluck();
const listPlants = database.prepare(
  "SELECT name, tag FROM plants WHERE garden = ? AND id > ? ORDER BY id LIMIT ?",
);
const addPlant = database
  .prepare(
    `INSERT INTO plants (garden, id, name, tag)
     SELECT @garden, coalesce(max(id), 0) + 1, @name, @tag FROM plants WHERE garden = @garden
     RETURNING id`,
  )
  .pluck();
const removePlant = database.prepare("DELETE FROM plants WHERE garden = ? AND id = ?");

const plantSchema = {
  type: "object",
  required: ["name", "tag"],
  properties: { name: { type: "string" }, tag: { type: "string" } },
};

const app = Fastify({ logger: false });

app.get("/healthz", () => "ok");

app.register(async (plants) => {
  plants.decorateRequest("garden", "");
  plants.addHook("onRequest", async (request, reply) => {
    const [scheme, token] = (request.headers.authorization ?? "").split(" ");
    const isBearer = scheme?.toLowerCase() === "bearer" && token !== undefined;
    const hash = createHash("sha256")
      .update(token ?? "")
      .digest("hex");
    const garden = isBearer ? findGarden.get(hash) : undefined;
    if (garden === undefined) {
      reply.header("WWW-Authenticate", 'Bearer realm="plants"');
      return reply.code(401).send({ error: "A valid token is needed." });
    }
    request.garden = garden;
  });

  plants.get(
    "/plants",
    {
      schema: {
        querystring: {
          type: "object",
          additionalProperties: false,
          properties: {
            limit: { type: "integer", minimum: 0, maximum: 2147483647 },
            after: { type: "integer", default: 0 },
          },
        },
        response: { 200: { type: "array", items: plantSchema } },
      },
    },
    async ({ garden, query }) => listPlants.all(garden, query.after, query.limit ?? -1),
  );

  plants.post(
    "/plants",
    {
      schema: {
        body: {
          type: "object",
          required: ["name"],
          additionalProperties: false,
          properties: {
            name: { type: "string", minLength: 1, maxLength: 200 },
            tag: { type: "string", maxLength: 100, default: "" },
          },
        },
        response: { 201: plantSchema },
      },
    },
    async (request, reply) => {
      const { name, tag } = request.body;
      const id = addPlant.get({ garden: request.garden, name, tag });
      reply.code(201).header("Location", `/plants/${id}`);
      return { name, tag };
    },
  );

  plants.delete(
    "/plants/:id",
    {
      schema: {
        params: { type: "object", properties: { id: { type: "integer" } } },
      },
    },
    async (request, reply) => {
      const { changes } = removePlant.run(request.garden, request.params.id);
      if (changes === 0) return reply.code(404).send({ error: "There is no such plant." });
      return reply.code(204).send();
    },
  );
});

await app.listen({ host: "127.0.0.1", port: Number(port) });
process.once("SIGTERM", async () => {
  await app.close();
  database.close();
  process.exit(0);
});
