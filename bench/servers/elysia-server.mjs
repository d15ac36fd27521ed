/** Elysia and bun:sqlite, as you would write it by hand, with its compiled schemas. */
import { Database } from "bun:sqlite";
import { Elysia, t } from "elysia";
import { openPlants, readBearer } from "./plants-database.mjs";

const [port, databasePath] = process.argv.slice(2);
const plants = openPlants(new Database(databasePath));

const listQuery = t.Object({
  limit: t.Optional(t.Integer({ minimum: 0, maximum: 2147483647 })),
  after: t.Optional(t.Integer()),
});
const newPlant = t.Object({
  name: t.String({ minLength: 1, maxLength: 200 }),
  tag: t.String({ maxLength: 100, default: "" }),
});
const plantId = t.Object({ id: t.Integer() });

new Elysia()
  .get("/readyz", "ok")
  .onError(({ code, status }) => {
    if (code === "VALIDATION") return status(400, { error: "The request is not valid." });
  })
  .derive(({ headers, status, set }) => {
    const garden = plants.findGarden(readBearer(headers.authorization));
    if (garden !== undefined) return { garden };
    set.headers["www-authenticate"] = 'Bearer realm="plants"';
    return status(401, { error: "A valid token is needed." });
  })
  .get("/plants", ({ garden, query }) => plants.list(garden, query.limit, query.after), {
    query: listQuery,
  })
  .post(
    "/plants",
    ({ garden, body: { name, tag }, set }) => {
      const id = plants.add(garden, name, tag);
      set.status = 201;
      set.headers.location = `/plants/${id}`;
      return { name, tag };
    },
    { body: newPlant },
  )
  .delete(
    "/plants/:id",
    ({ garden, params, set, status }) => {
      if (!plants.remove(garden, params.id)) {
        return status(404, { error: "There is no such plant." });
      }
      set.status = 204;
    },
    { params: plantId },
  )
  .listen({ hostname: "127.0.0.1", port: Number(port) });
